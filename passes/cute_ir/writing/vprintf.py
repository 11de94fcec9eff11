# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`gpu.printf` as a call of the device's `vprintf` (CUDA C++ Programming Guide, Formatted Output)."""

from xdsl.dialects import llvm
from xdsl.dialects.builtin import Float64Type, IntAttr, StringAttr, f64, i8, i32
from xdsl.ir import Block, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from ....base.errors import Code
from ....base.printable import printable
from ....dialects.gpu import ModuleOp as GpuModuleOp
from ....dialects.gpu.launch import PrintfOp
from ....dialects.ptx.base import integer_bits
from ....dialects.ptx.sync import conversions
from ...errors import LoweringError
from ...writing.emitter import Emitter
from .llvm_types import integer

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
