# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Types of the `llvm` dialect: of values, and of several results as one structure."""

from collections.abc import Sequence
from typing import cast

from xdsl.dialects import llvm
from xdsl.dialects.builtin import DenseArrayBase, IndexType, IntegerAttr, IntegerType, Signedness, VectorType, i64
from xdsl.ir import Attribute, Operation, SSAValue

from ....base.errors import Code
from ....dialects.ptx.base import float_bits
from ...errors import LoweringError
from ...writing.emitter import Emitter

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
