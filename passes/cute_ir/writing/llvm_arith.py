# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`arith`, `math` and `ub` in the `llvm` dialect: most operations have a counterpart of the same meaning.

Types of the `llvm` dialect are those of values, and of several results as one structure.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from xdsl.dialects import arith, llvm, math, ub
from xdsl.dialects.builtin import (
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    Signedness,
    VectorType,
    i64,
)
from xdsl.ir import Attribute, Operation, SSAValue

from ....base.errors import Code
from ....dialects.llvm import PoisonOp
from ....dialects.ptx.base import float_bits, integer_bits
from ...errors import LoweringError
from ...writing.emitter import Emitter

Convert = Callable[[Emitter, Any], SSAValue]
"""Emits the counterpart of an operation with one result, whose operands and result have their LLVM types already."""


def _absolute(value: SSAValue) -> Operation:
    return llvm.FAbsOp(value, value.type)


_SAME: Mapping[type[Operation], Callable[..., Operation]] = {
    arith.DivSIOp: llvm.SDivOp, arith.DivUIOp: llvm.UDivOp, arith.RemSIOp: llvm.SRemOp, arith.RemUIOp: llvm.URemOp,
    arith.AndIOp: llvm.AndOp, arith.OrIOp: llvm.OrOp, arith.XOrIOp: llvm.XOrOp,
    arith.ShRSIOp: llvm.AShrOp, arith.ShRUIOp: llvm.LShrOp, arith.SelectOp: llvm.SelectOp,
}  # fmt: skip
_OVERFLOWING: Mapping[type[Operation], Callable[..., Operation]] = {
    arith.AddiOp: llvm.AddOp, arith.SubiOp: llvm.SubOp, arith.MuliOp: llvm.MulOp, arith.ShLIOp: llvm.ShlOp,
}  # fmt: skip
_FLOAT: Mapping[type[Operation], Callable[..., Operation]] = {
    arith.AddfOp: llvm.FAddOp, arith.SubfOp: llvm.FSubOp, arith.MulfOp: llvm.FMulOp, arith.DivfOp: llvm.FDivOp,
    arith.NegfOp: llvm.FNegOp, arith.MaxnumfOp: llvm.VectorFMaxOp, arith.MinnumfOp: llvm.VectorFMinOp,
    math.AbsFOp: _absolute, math.CeilOp: llvm.FCeilOp, math.FloorOp: llvm.FFloorOp, math.SqrtOp: llvm.FSqrtOp,
    math.ExpOp: llvm.FExpOp, math.Exp2Op: llvm.FExp2Op, math.LogOp: llvm.FLogOp, math.Log2Op: llvm.FLog2Op,
    math.SinOp: llvm.FSinOp, math.CosOp: llvm.FCosOp, math.PowFOp: llvm.FPowOp, math.CopySignOp: llvm.FCopySignOp,
    math.FmaOp: llvm.FMAOp,
}  # fmt: skip
_CASTS: Mapping[type[Operation], Callable[..., Operation]] = {
    arith.ExtSIOp: llvm.SExtOp, arith.ExtUIOp: llvm.ZExtOp, arith.TruncIOp: llvm.TruncOp,
    arith.ExtFOp: llvm.FPExtOp, arith.TruncFOp: llvm.FPTruncOp, arith.SIToFPOp: llvm.SIToFPOp,
    arith.BitcastOp: llvm.BitcastOp,
}  # fmt: skip
_EXTREMA: Mapping[type[Operation], str] = {
    arith.MaxSIOp: "sgt", arith.MinSIOp: "slt", arith.MaxUIOp: "ugt", arith.MinUIOp: "ult",
}  # fmt: skip


def _same(emitter: Emitter, op: Operation) -> SSAValue:
    return emitter.value(_SAME[type(op)](*op.operands))


def _overflowing(emitter: Emitter, op: arith.SignlessIntegerBinaryOperationWithOverflow) -> SSAValue:
    flags = llvm.OverflowAttr([llvm.OverflowFlag(flag.value) for flag in op.overflow_flags.data])
    return emitter.value(_OVERFLOWING[type(op)](op.lhs, op.rhs, overflow=flags))


def _float(emitter: Emitter, op: Operation) -> SSAValue:
    new = _FLOAT[type(op)](*op.operands)
    flags = op.properties.get("fastmath")
    if isinstance(flags, arith.FastMathFlagsAttr):
        new.properties["fastmathFlags"] = llvm.FastMathAttr(flags.data)
    return emitter.value(new)


def _cast(emitter: Emitter, op: Operation) -> SSAValue:
    return emitter.value(_CASTS[type(op)](op.operands[0], op.results[0].type))


def _index_cast(emitter: Emitter, op: arith.IndexCastOp) -> SSAValue:
    given, wanted = _width(op.input.type), _width(op.result.type)
    if given == wanted:
        return op.input
    return emitter.value((llvm.SExtOp if given < wanted else llvm.TruncOp)(op.input, op.result.type))


def _width(type: Attribute) -> int:
    """The width in bits of an integer or a vector of integers."""
    element = cast("VectorType", type).element_type if isinstance(type, VectorType) else type
    bits = integer_bits(element)
    assert bits is not None
    return bits


def compare(emitter: Emitter, predicate: str, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
    """An integer comparison, such as `slt`."""
    number = llvm.ICmpPredicateFlag(predicate).to_int()
    return emitter.value(llvm.ICmpOp(lhs, rhs, IntegerAttr(number, i64)))


def _cmpi(emitter: Emitter, op: arith.CmpiOp) -> SSAValue:
    return compare(emitter, arith.CMPI_COMPARISON_OPERATIONS[op.predicate.value.data], op.lhs, op.rhs)


def _cmpf(emitter: Emitter, op: arith.CmpfOp) -> SSAValue:
    predicate = llvm.FCmpPredicateFlag.from_int(op.predicate.value.data)  # both dialects number them alike
    new = llvm.FCmpOp(op.lhs, op.rhs, predicate.value)
    new.fastmathFlags = llvm.FastMathAttr(op.fastmath.data)
    return emitter.value(new)


def _extremum(emitter: Emitter, op: arith.SignlessIntegerBinaryOperation) -> SSAValue:
    first = compare(emitter, _EXTREMA[type(op)], op.lhs, op.rhs)
    return emitter.value(llvm.SelectOp(first, op.lhs, op.rhs))


def _constant(emitter: Emitter, op: arith.ConstantOp) -> SSAValue:
    value = op.value
    if isinstance(value, IntegerAttr):  # that of an `index` is an i64
        bits = _width(op.result.type)
        value = IntegerAttr(value.value.data, IntegerType(bits))
    return emitter.value(llvm.ConstantOp(value, op.result.type))


def _poison(emitter: Emitter, op: ub.PoisonOp) -> SSAValue:
    return emitter.value(PoisonOp(op.result.type))


def convertible(op: Operation) -> bool:
    """False for an operation that `CONVERSIONS` lists and yet cannot be converted with its types or constant."""
    vector = any(isinstance(value.type, VectorType) for value in op.operands)
    if isinstance(op, arith.CmpfOp | arith.MaxSIOp | arith.MinSIOp | arith.MaxUIOp | arith.MinUIOp | arith.SelectOp):
        return not vector  # xDSL's llvm.fcmp and the condition of its llvm.select are scalar
    if isinstance(op, arith.ConstantOp):
        known = isinstance(op.value, IntegerAttr | FloatAttr | DenseIntOrFPElementsAttr)
        return known and not (isinstance(op.value, DenseIntOrFPElementsAttr) and _of_index(op.value))
    return True


def _of_index(value: Attribute) -> bool:
    return isinstance(cast("DenseIntOrFPElementsAttr", value).get_element_type(), IndexType)


CONVERSIONS: Mapping[type[Operation], Convert] = {
    **dict.fromkeys(_SAME, _same),
    **dict.fromkeys(_OVERFLOWING, _overflowing),
    **dict.fromkeys(_FLOAT, _float),
    **dict.fromkeys(_CASTS, _cast),
    **dict.fromkeys(_EXTREMA, _extremum),
    arith.IndexCastOp: _index_cast,
    arith.CmpiOp: _cmpi,
    arith.CmpfOp: _cmpf,
    arith.ConstantOp: _constant,
    ub.PoisonOp: _poison,
}
"""The rule for each operation."""


_AS_THEY_ARE = (llvm.LLVMStructType, llvm.LLVMPointerType, llvm.LLVMArrayType)


def llvm_type(type: Attribute, op: Operation) -> Attribute:
    """The type of the same value in the `llvm` dialect: `index` is an i64.

    LoweringError, placed at `op`, where there is none.
    """
    if isinstance(type, IndexType):
        return i64
    if isinstance(type, _AS_THEY_ARE) or (float_bits(type) or 0) > 8:
        return type
    if isinstance(type, IntegerType) and cast("IntegerType", type).signedness.data is Signedness.SIGNLESS:
        return cast("IntegerType", type)
    if isinstance(type, VectorType):
        vector = cast("VectorType", type)
        if vector.get_num_dims() == 1:
            return VectorType(llvm_type(vector.element_type, op), vector.shape, vector.scalable_dims)
    raise LoweringError(
        Code.PASS_FAILED,
        f"'{op.name}' has a value of type {str(cast(Attribute, type))[:80]}, which has no type in the 'llvm' dialect",
        op,
        "lower it first: cute-expand-ops and cute-to-base for values of 'cute'",
    )


def packed_type(types: Sequence[Attribute]) -> Attribute:
    """The one type of a function's results: nothing, the result's, or a structure of them."""
    if not types:
        return llvm.LLVMVoidType()
    return types[0] if len(types) == 1 else llvm.LLVMStructType.from_type_list(types)


def pack(emitter: Emitter, values: Sequence[SSAValue]) -> SSAValue | None:
    """Several values as one structure; one value is itself."""
    if len(values) < 2:
        return values[0] if values else None
    packed = emitter.value(llvm.UndefOp(packed_type([value.type for value in values])))
    for index, value in enumerate(values):
        packed = emitter.value(llvm.InsertValueOp(DenseArrayBase.from_list(i64, [index]), packed, value))
    return packed


def unpack(emitter: Emitter, packed: SSAValue, types: Sequence[Attribute]) -> list[SSAValue]:
    """The values that `pack` made one of."""
    if len(types) == 1:
        return [packed]
    places = [DenseArrayBase.from_list(i64, [index]) for index in range(len(types))]
    return [emitter.value(llvm.ExtractValueOp(at, packed, type)) for at, type in zip(places, types, strict=True)]


def integer(emitter: Emitter, value: int, type: IntegerType) -> SSAValue:
    """An integer constant of the `llvm` dialect."""
    return emitter.value(llvm.ConstantOp(IntegerAttr(value, type), type))
