# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`one-shot-convert-to-llvm`: functions and kernels in the `llvm` dialect."""

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import cf, func, gpu, llvm, scf
from xdsl.dialects.builtin import FunctionType, ModuleOp, StringAttr, UnitAttr, UnrealizedConversionCastOp, i64
from xdsl.ir import Attribute, Operation
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import GreedyRewritePatternApplier, PatternRewriteWalker
from xdsl.rewriter import BlockInsertPoint, InsertPoint, Rewriter
from xdsl.transforms.convert_scf_to_cf import ForLowering, IfLowering

from ...base.errors import Code
from ...dialects.gpu import BlockDimOp, BlockIdOp, GridDimOp, ThreadIdOp
from ...dialects.gpu import ModuleOp as GpuModuleOp
from ...dialects.gpu.binary import BinaryOp
from ...dialects.gpu.launch import BarrierOp, FuncOp, LaunchFuncOp, PrintfOp, ReturnOp
from ...dialects.nvvm import SPECIAL_REGISTERS, Barrier0Op
from ..errors import LoweringError
from ..writing.emitter import Emitter
from .writing.llvm_arith import CONVERSIONS, convertible
from .writing.llvm_types import llvm_type, pack, packed_type, unpack
from .writing.vprintf import lower_printf

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
