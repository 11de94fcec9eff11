# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Conversions: the types that Python's numbers take among the values of a kernel, and conversions between types, as
operations.
"""

from collections.abc import Callable, Mapping, Sequence
from math import isfinite
from types import MappingProxyType
from typing import Any, TypeAlias, TypeGuard
from typing import cast as cast_type

from xdsl.dialects import arith
from xdsl.dialects.builtin import FloatAttr, IndexType, IntegerAttr, IntegerType, VectorType, i32, i64
from xdsl.ir import Attribute, Operation, SSAValue

from ...base.errors import Code, TilefoldError
from ...base.printable import shown
from ...dialects.gpu import CoordinateOp
from ...dialects.ptx import CvtOp
from ..tracing.state import insert_value
from .dtypes import Boolean, DType, Float32, Int32, Int64, number_on_host, promote
from .operators import Comparable, Operand

Number: TypeAlias = "int | float | bool"


def is_number(x: object) -> TypeGuard[Number]:
    """Whether `x` is a Python number, or a NumPy scalar, which counts as the number that it is."""
    return isinstance(number_of(x), int | float)


def number_of(x: Operand) -> Operand:
    """A NumPy scalar, or a number of a type that was made outside the kernel, as a Python number; anything else as it
    is.
    """
    if isinstance(x, int | float | Comparable) or not hasattr(x, "__array_interface__"):
        return number_on_host(x)
    return x.item() if x.shape == () else x


def check_operand(x: object) -> None:
    """Raises TilefoldError (E5002) for anything but fragments, values and numbers."""
    if not isinstance(x, Comparable) and not is_number(x):
        raise TilefoldError(
            Code.BUILD_VALUE,
            f"expected a fragment, a value or a number, got {type(x).__name__}",
            "t.load() is all elements of a tensor as a fragment, t[i, j] is one of them",
        )


def shown_number(x: Number) -> str:
    """The text of a number for a message; for a very large integer, its size."""
    return shown(x) if isinstance(x, int) else str(x)


def float_attribute(x: Number, dtype: DType) -> FloatAttr[Any]:
    """A number as an attribute of a floating-point type. Raises TilefoldError (E5002) for one beyond its range."""
    try:
        number = float(x)
        attribute = FloatAttr(number, cast_type("Any", dtype.ir))
    except OverflowError:
        number, attribute = 0.0, None
    if attribute is None or (isfinite(number) and not isfinite(attribute.value.data)):
        message = f"{shown_number(x)} is not a number of type {dtype}"
        raise TilefoldError(Code.BUILD_VALUE, message, "float('inf') is infinity")
    return attribute


def weak_type(x: Number, like: DType | None = None) -> DType:
    """The type of a number that meets a value of type `like`: that type, or one that can hold the number. One that 32
    bits do not hold makes Int64 of such a value, as in CuTe.
    """
    x = number_of(x)
    if isinstance(x, bool):
        return Boolean if like is None else like
    if isinstance(x, int):
        if like is not None and like.kind != "bool":
            is_wide = like.kind == "int" and like.bits == Int32.bits and not Int32.least <= x < 1 << 32
            return Int64 if is_wide and Int64.least <= x <= Int64.greatest else like
        return Int32 if -(1 << 31) <= x < 1 << 31 else Int64
    return like if like is not None and like.kind == "float" else Float32


def check_numbers(dtype: DType, *xs: object, are_bits: bool = False) -> None:
    """Raises TilefoldError (E5002) for a number that would be another one in the type in which it is computed with.
    Those that `are_bits` may have the sign's bit, as 0x80008000 for an Int32.
    """
    if dtype.kind == "int":
        greatest = (1 << dtype.bits) - 1 if are_bits else dtype.greatest
        for x in xs:
            if is_number(x) and not dtype.least <= number_of(x) <= greatest:
                hint = "convert the value first: x.to(cute.Int64)"
                raise TilefoldError(Code.BUILD_VALUE, f"{shown_number(x)} is not a number of type {dtype}", hint)


def common_type(*xs: Any) -> DType:
    """The type in which values, fragments and numbers are computed together; numbers take that of the
    others, TFloat32 is Float32."""
    common: DType | None = None
    for x in xs:
        check_operand(x)
        if not is_number(x):
            common = x.dtype if common is None else promote(common, x.dtype)
    for x in xs:
        if is_number(x):
            own = weak_type(x, common)
            common = own if common is None else promote(common, own)
    assert common is not None, "there is at least one"
    return Float32 if common.name == "TFloat32" else common


def integer_attribute(number: int, type: Attribute) -> IntegerAttr[Any]:
    """A number as an attribute of an integer type or `index`."""
    return IntegerAttr(number, cast_type("IntegerType", type))


def cast(ssa: SSAValue, source: DType, target: DType) -> SSAValue:
    """`ssa`, of type `source`, as a value of type `target`. Raises TilefoldError (E5002) if they do not convert."""
    check_cast(source, target)
    if target.name == "TFloat32":
        wide = cast(ssa, source, Float32)
        return insert_value(CvtOp("rna.tf32.f32", [wide]))
    if source.ir == target.ir:
        return ssa
    return _CASTS[source.kind, target.kind](ssa, source, target)


def check_cast(source: DType, target: DType) -> None:
    """Raises TilefoldError (E5002) if the types do not convert."""
    if "packed" in (source.kind, target.kind):
        hint = "elements narrower than a byte can only be copied and multiplied"
        raise TilefoldError(Code.BUILD_VALUE, f"a kernel cannot convert {source} to {target}", hint)


def in_vector(values: Sequence[SSAValue]) -> SSAValue:
    """A vector of values of one type."""
    from xdsl.dialects.vector import BroadcastOp, InsertOp

    made = insert_value(BroadcastOp(values[0], VectorType(values[0].type, [len(values)])))
    for index, value in enumerate(values[1:], 1):
        made = insert_value(InsertOp(value, made, [index]))
    return made


def from_vector(vector: SSAValue, count: int) -> list[SSAValue]:
    """The `count` elements of a vector."""
    from xdsl.dialects.vector import ExtractOp

    element = cast_type("VectorType[Any]", vector.type).element_type
    return [insert_value(ExtractOp(vector, [index], element)) for index in range(count)]


def _to(operation: Callable[..., Operation], ssa: SSAValue, target: DType) -> SSAValue:
    """The result of an operation that converts, in the type of the IR that stands for `target`."""
    return insert_value(operation(ssa, target.ir))


def register_of(ssa: SSAValue) -> SSAValue | None:
    """The coordinate of type `index` that an i32 was made from; None for any other integer."""
    op = ssa.owner
    return op.input if isinstance(op, arith.IndexCastOp) and isinstance(op.input.owner, CoordinateOp) else None


def _int_to_int(ssa: SSAValue, source: DType, target: DType) -> SSAValue:
    if isinstance(target.ir, IndexType) and (register := register_of(ssa)) is not None:
        return register
    if isinstance(target.ir, IndexType) and source.unsigned and source.bits < target.bits:
        ssa = insert_value(arith.ExtUIOp(ssa, i64))  # an index is cast as if it had a sign
    if isinstance(source.ir, IndexType) or isinstance(target.ir, IndexType):
        return insert_value(arith.IndexCastOp(ssa, target.ir))
    if source.bits < target.bits:
        return _to(arith.ExtUIOp if source.unsigned else arith.ExtSIOp, ssa, target)
    return _to(arith.TruncIOp, ssa, target)


def _float_to_float(ssa: SSAValue, source: DType, target: DType) -> SSAValue:
    if source.bits == target.bits or (min(source.bits, target.bits) == 8 and max(source.bits, target.bits) != 32):
        # between f16 and bf16, or the 8-bit floats, and from and to these: by way of f32, which has them all
        wide = _float_to_float(ssa, source, Float32)
        return _float_to_float(wide, Float32, target)
    return _to(arith.ExtFOp if source.bits < target.bits else arith.TruncFOp, ssa, target)


def _int_to_float(ssa: SSAValue, source: DType, target: DType) -> SSAValue:
    if target.bits == 8:
        return _float_to_float(_int_to_float(ssa, source, Float32), Float32, target)
    if isinstance(source.ir, IndexType):
        ssa = insert_value(arith.IndexCastOp(ssa, i64))
    return _to(arith.UIToFPOp if source.unsigned else arith.SIToFPOp, ssa, target)


def _float_to_int(ssa: SSAValue, source: DType, target: DType) -> SSAValue:
    if source.bits == 8:
        ssa, source = _float_to_float(ssa, source, Float32), Float32
    if isinstance(target.ir, IndexType):
        return insert_value(arith.IndexCastOp(insert_value(arith.FPToSIOp(ssa, i64)), target.ir))
    return _to(arith.FPToUIOp if target.unsigned else arith.FPToSIOp, ssa, target)


def _bool_to_int(ssa: SSAValue, source: DType, target: DType) -> SSAValue:
    if isinstance(target.ir, IndexType):
        return insert_value(arith.IndexCastOp(insert_value(arith.ExtUIOp(ssa, i32)), target.ir))
    return _to(arith.ExtUIOp, ssa, target)


def _bool_to_float(ssa: SSAValue, source: DType, target: DType) -> SSAValue:
    return _int_to_float(_bool_to_int(ssa, source, Int32), Int32, target)


def _int_to_bool(ssa: SSAValue, source: DType, target: DType) -> SSAValue:
    zero = insert_value(arith.ConstantOp(integer_attribute(0, source.ir)))
    return insert_value(arith.CmpiOp(ssa, zero, "ne"))


def _float_to_bool(ssa: SSAValue, source: DType, target: DType) -> SSAValue:
    if source.bits == 8:
        ssa, source = _float_to_float(ssa, source, Float32), Float32
    zero = insert_value(arith.ConstantOp(FloatAttr(0.0, cast_type("Any", source.ir))))
    return insert_value(arith.CmpfOp(ssa, zero, "une"))


_CASTS: Mapping[tuple[str, str], Callable[[SSAValue, DType, DType], SSAValue]] = MappingProxyType({
    ("int", "int"): _int_to_int, ("int", "float"): _int_to_float, ("int", "bool"): _int_to_bool,
    ("float", "float"): _float_to_float, ("float", "int"): _float_to_int, ("float", "bool"): _float_to_bool,
    ("bool", "int"): _bool_to_int, ("bool", "float"): _bool_to_float,
})  # fmt: skip
