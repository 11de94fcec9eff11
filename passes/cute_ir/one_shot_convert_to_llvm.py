# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`one-shot-convert-to-llvm`: functions and kernels in the `llvm` dialect.

`gpu.printf` becomes a call of the device's `vprintf` (CUDA C++ Programming Guide, Formatted Output).
"""

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import cf, func, gpu, llvm, scf
from xdsl.dialects.builtin import (
    Float64Type,
    FunctionType,
    IntAttr,
    ModuleOp,
    StringAttr,
    UnitAttr,
    UnrealizedConversionCastOp,
    f64,
    i8,
    i32,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import GreedyRewritePatternApplier, PatternRewriteWalker
from xdsl.rewriter import BlockInsertPoint, InsertPoint, Rewriter
from xdsl.transforms.convert_scf_to_cf import ForLowering, IfLowering

from ...base.errors import Code
from ...base.printable import printable
from ...dialects.gpu import BlockDimOp, BlockIdOp, GridDimOp, ThreadIdOp
from ...dialects.gpu import ModuleOp as GpuModuleOp
from ...dialects.gpu.binary import BinaryOp
from ...dialects.gpu.launch import BarrierOp, FuncOp, LaunchFuncOp, PrintfOp, ReturnOp
from ...dialects.nvvm import SPECIAL_REGISTERS, Barrier0Op
from ...dialects.ptx.base import integer_bits
from ...dialects.ptx.sync import conversions
from ..errors import LoweringError
from ..writing.emitter import Emitter
from .writing.llvm_arith import CONVERSIONS, convertible, integer, llvm_type, pack, packed_type, unpack

_VPRINTF = "vprintf"
_FORMAT = "printfFormat_{}"
_POINTER = llvm.LLVMPointerType()


def lower_printf(emitter: Emitter, op: PrintfOp) -> None:
    """Replaces one print: the format is a global of the module, the values lie in a structure on the stack.

    LoweringError for a format with other conversions than values, or unknown ones.
    """
    try:
        wanted = conversions(op.format.data)
    except ValueError as error:
        raise LoweringError(Code.PASS_FAILED, str(error), op) from error
    if len(wanted) != len(op.args):
        raise LoweringError(Code.PASS_FAILED, f"the format has {len(wanted)} conversions for {len(op.args)} values", op)
    start = _format(emitter, op)
    values = [_promote(emitter, value, conversion) for value, conversion in zip(op.args, wanted, strict=True)]
    if values:
        kind = llvm.LLVMStructType.from_type_list([value.type for value in values])
        buffer = _write_buffer(emitter, kind)
        for index, value in enumerate(values):
            field = emitter.value(llvm.GEPOp(buffer, [0, index], kind))
            emitter.insert(llvm.StoreOp(value, field))
    else:
        buffer = emitter.value(llvm.ZeroOp.create(result_types=[_POINTER]))
    emitter.insert(llvm.CallOp(_VPRINTF, start, buffer, return_type=i32))
    emitter.replace()


def _format(emitter: Emitter, op: PrintfOp) -> SSAValue:
    """The address of the format, which is made a global of the module; declares vprintf with the first."""
    parent = op.parent_op()
    while parent is not None and not isinstance(parent, GpuModuleOp):
        parent = parent.parent_op()
    if parent is None:
        raise LoweringError(Code.PASS_FAILED, "'gpu.printf' works only in functions of a gpu.module", op, "call printf")
    block = parent.body.block
    symbols = {name.data for op in block.ops if isinstance(name := op.properties.get("sym_name"), StringAttr)}
    if _VPRINTF not in symbols:
        kind = llvm.LLVMFunctionType([_POINTER, _POINTER], i32)
        _at_start(block, llvm.FuncOp(_VPRINTF, kind, linkage=llvm.LinkageAttr("external")))
    count = 0
    while (name := _FORMAT.format(count)) in symbols:
        count += 1
    text = printable(op.format.data) + "\0"
    characters = llvm.LLVMArrayType(IntAttr(len(text.encode())), i8)
    internal = llvm.LinkageAttr("internal")
    _at_start(block, llvm.GlobalOp(characters, name, internal, constant=True, value=StringAttr(text)))
    address = emitter.value(llvm.AddressOfOp(name, _POINTER))
    return emitter.value(llvm.GEPOp(address, [0, 0], characters))


def _at_start(block: Block, op: llvm.FuncOp | llvm.GlobalOp) -> None:
    Rewriter.insert_op(op, InsertPoint.at_start(block))


def _promote(emitter: Emitter, value: SSAValue, conversion: str) -> SSAValue:
    """An argument after C's promotions of variadic ones: floats are f64, integers have 32 bits or more."""
    if isinstance(value.type, llvm.LLVMPointerType | Float64Type):
        return value
    bits = integer_bits(value.type)
    if bits is None:
        return emitter.value(llvm.FPExtOp(value, f64))
    if bits >= 32:
        return value
    signed = conversion in ("d", "i") and bits > 1
    return emitter.value((llvm.SExtOp if signed else llvm.ZExtOp)(value, i32))


def _write_buffer(emitter: Emitter, kind: llvm.LLVMStructType) -> SSAValue:
    """Stack memory for the values, which a function has once: LLVM places only those of its first block beforehand."""
    block = emitter.op.parent_block()
    region = block.parent_region() if block is not None else None
    first = region.blocks[0] if region is not None else None
    assert first is not None
    point = emitter.point
    if block is not first:
        emitter.point = InsertPoint.at_start(first)
    buffer = emitter.value(llvm.AllocaOp(integer(emitter, 1, i32), kind, alignment=8))
    emitter.point = point
    return buffer


KERNEL = "gpu.kernel"
"""The attribute of an llvm.func that can be launched; `nvvm.kernel` comes with it."""
BLOCK_SIZE = "nvvm.reqntid"
"""The attribute of a kernel that says how many threads its blocks have."""

_REGISTERS: dict[type[Operation], str] = {
    ThreadIdOp: "tid", BlockIdOp: "ctaid", BlockDimOp: "ntid", GridDimOp: "nctaid",
}  # fmt: skip
_STAYS = (ModuleOp, GpuModuleOp, BinaryOp)


@dataclass(frozen=True)
class OneShotConvertToLLVMPass(ModulePass):
    """Converts `func`, `cf`, `scf`, `arith`, `math`, `ub` and the `gpu` operations of kernels, all at once.

    `index` becomes i64, several results become a structure, `gpu.func` becomes an `llvm.func` within its `gpu.module`,
    and thread and block numbers become `nvvm` operations. `gpu.launch_func` stays, with sizes of type i64. Refuses
    every operation without a counterpart.

    Before: `gpu.func @k(%a: i32) kernel { %0 = arith.addi %a, %a : i32 ... gpu.return }`. After:

        llvm.func @k(%a: i32) attributes {gpu.kernel, nvvm.kernel} { %0 = llvm.add %a, %a : i32 ... llvm.return }
    """

    name = "one-shot-convert-to-llvm"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        scf_to_cf(op)
        inner_operations = list(op.walk())
        for inner in inner_operations:
            _convert_types(inner)
        for inner in inner_operations:
            if not isinstance(inner, _STAYS) and inner.dialect_name() not in ("llvm", "nvvm"):
                _convert(inner)


def _convert_types(op: Operation) -> None:
    """Gives results and block arguments their types of the `llvm` dialect."""
    arguments = [argument for region in op.regions for block in region.blocks for argument in block.args]
    for value in (*op.results, *arguments):
        Rewriter.replace_value_with_new_type(value, llvm_type(value.type, op))


def _convert(op: Operation) -> None:
    emitter = Emitter(op)
    if (conversion := CONVERSIONS.get(type(op))) is not None and convertible(op):
        emitter.replace([conversion(emitter, op)])
        return
    match op:
        case func.FuncOp():
            visibility = op.sym_visibility
            _function(op, op.sym_name.data, op.function_type, op.attributes, visibility, op.arg_attrs, op.res_attrs)
        case FuncOp():
            attributes = {name: value for name, value in op.attributes.items() if name != "sym_name"}
            if op.kernel is not None:
                attributes |= {KERNEL: UnitAttr(), "nvvm.kernel": UnitAttr()}
            for known in ("gpu.known_block_size", "known_block_size"):
                if known in attributes:
                    attributes[BLOCK_SIZE] = attributes.pop(known)
            _function(op, op.name_of(), op.function_type, attributes)
        case func.ReturnOp() | ReturnOp():
            emitter.insert(llvm.ReturnOp(pack(emitter, list(op.operands))))
            emitter.replace()
        case func.CallOp():
            types = list(op.result_types)
            returned = packed_type(types) if types else None
            call = emitter.insert(llvm.CallOp(op.callee, *op.arguments, return_type=returned))
            emitter.replace(unpack(emitter, call.results[0], types) if types else [])
        case cf.BranchOp():
            emitter.insert(llvm.BrOp(op.successor, *op.arguments))
            emitter.replace()
        case cf.ConditionalBranchOp():
            arms = op.then_block, op.then_arguments, op.else_block, op.else_arguments
            emitter.insert(llvm.CondBrOp(op.cond, *arms))
            emitter.replace()
        case ThreadIdOp() | BlockIdOp() | BlockDimOp() | GridDimOp():
            dimension = op.properties["dimension"]
            assert isinstance(dimension, gpu.DimensionAttr)
            register = SPECIAL_REGISTERS[f"{_REGISTERS[type(op)]}.{dimension.data.value}"]
            emitter.replace([emitter.value(llvm.SExtOp(emitter.value(register()), i64))])
        case BarrierOp():
            emitter.insert(Barrier0Op())
            emitter.replace()
        case PrintfOp():
            lower_printf(emitter, op)
        case LaunchFuncOp():
            pass
        case UnrealizedConversionCastOp() if [*op.operand_types] == [*op.result_types]:
            emitter.replace(op.operands)
        case _:
            raise LoweringError(
                Code.PASS_FAILED, f"'{op.name}' cannot be converted to the 'llvm' dialect", op, "lower it first"
            )


def _function(
    op: func.FuncOp | FuncOp,
    name: str,
    kind: FunctionType,
    attributes: dict[str, Attribute],
    visibility: StringAttr | None = None,
    arg_attrs: Attribute | None = None,
    res_attrs: Attribute | None = None,
) -> None:
    """Replaces a function by one of the `llvm` dialect with the same body."""
    inputs = [llvm_type(type, op) for type in kind.inputs]
    result = packed_type([llvm_type(type, op) for type in kind.outputs])
    others: dict[str, Attribute | None] = {"arg_attrs": arg_attrs}
    if res_attrs is not None and len(kind.outputs) == 1:  # those of several results have no place in a structure
        others["res_attrs"] = res_attrs
    new = llvm.FuncOp(
        name,
        llvm.LLVMFunctionType(inputs, result),
        linkage=llvm.LinkageAttr("external"),
        sym_visibility=visibility,
        body=op.detach_region(op.body),
        other_props=others,
        extra_attrs=attributes,
    )
    Emitter(op).insert(new)
    Rewriter.erase_op(op)


def scf_to_cf(module: ModuleOp) -> None:
    """Replaces every `scf.if`, `scf.for` and `scf.while`; dead code stays, unlike with xDSL's `convert-scf-to-cf`."""
    for op in list(module.walk()):
        if isinstance(op, scf.WhileOp):
            lower_while(op)
    patterns = GreedyRewritePatternApplier([IfLowering(), ForLowering()], dce_enabled=False)
    PatternRewriteWalker(patterns).rewrite_module(module)


def lower_while(op: scf.WhileOp) -> None:
    """Replaces a loop by the blocks that decide, the body, and the code after it, whose arguments are the results.

    Its regions may hold other loops, and more than one block where such loops have been replaced.
    """
    block = op.parent_block()
    condition, body = op.before_region.last_block, op.after_region.last_block
    assert block is not None
    assert condition is not None
    assert body is not None
    decision, end_of_body = condition.last_op, body.last_op
    assert isinstance(decision, scf.ConditionOp)
    assert isinstance(end_of_body, scf.YieldOp)
    before, after = op.before_region.blocks[0], op.after_region.blocks[0]
    rest = block.split_before(op)
    results = [rest.insert_arg(type, index) for index, type in enumerate(op.result_types)]
    branches = (
        (cf.ConditionalBranchOp(decision.condition, after, decision.args, rest, decision.args), decision),
        (cf.BranchOp(before, *end_of_body.operands), end_of_body),
    )
    for branch, old in branches:
        branch.location = op.location
        Rewriter.insert_op(branch, InsertPoint.before(old))
        Rewriter.erase_op(old)
    entry = cf.BranchOp(before, *op.arguments)
    entry.location = op.location
    block.add_op(entry)
    for region in (op.before_region, op.after_region):
        Rewriter.inline_region(region, BlockInsertPoint.before(rest))
    for old, new in zip(op.results, results, strict=True):
        new.name_hint = old.name_hint
        old.replace_all_uses_with(new)
    Rewriter.erase_op(op)
