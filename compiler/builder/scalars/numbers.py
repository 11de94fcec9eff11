# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Python's numbers among the values of a kernel: which they are, and the types that they take there."""

from math import isfinite
from typing import Any, TypeAlias, TypeGuard, cast

from xdsl.dialects.builtin import FloatAttr

from ....base.errors import Code, TilefoldError
from .dtypes import Boolean, DType, Float32, Int32, Int64, promote
from .operators import Compared

Number: TypeAlias = "int | float | bool"


def is_number(x: object) -> TypeGuard[Number]:
    """Whether `x` is a Python number, or a NumPy scalar, which counts as the number that it is."""
    return isinstance(number_of(x), int | float)


def number_of(x: Any) -> Any:
    """A NumPy scalar as a Python number; anything else as it is."""
    if isinstance(x, int | float | Compared) or not hasattr(x, "__array_interface__"):
        return x
    return x.item() if x.shape == () else x


def check_operand(x: object) -> None:
    """Raises TilefoldError (E5002) for anything but fragments, values and numbers."""
    if not isinstance(x, Compared) and not is_number(x):
        raise TilefoldError(
            Code.BUILD_VALUE,
            f"expected a fragment, a value or a number, got {type(x).__name__}",
            "t.load() is all elements of a tensor as a fragment, t[i, j] is one of them",
        )


def shown_number(x: Number) -> str:
    """A number in a message; of a very large integer its size."""
    return f"an integer of {x.bit_length()} bits" if isinstance(x, int) and x.bit_length() > 128 else str(x)


def float_attribute(x: Number, dtype: DType) -> FloatAttr[Any]:
    """A number as an attribute of a floating-point type. Raises TilefoldError (E5002) for one beyond its range."""
    try:
        number = float(x)
        attribute = FloatAttr(number, cast("Any", dtype.ir))
    except OverflowError:
        number, attribute = 0.0, None
    if attribute is None or (isfinite(number) and not isfinite(attribute.value.data)):
        message = f"{shown_number(x)} is not a number of type {dtype}"
        raise TilefoldError(Code.BUILD_VALUE, message, "float('inf') is infinity")
    return attribute


def weak_type(x: Number, like: DType | None = None) -> DType:
    """The type of a number that meets a value of type `like`: that type, or one that can hold the number."""
    x = number_of(x)
    if isinstance(x, bool):
        return Boolean if like is None else like
    if isinstance(x, int):
        if like is not None and like.kind != "bool":
            return like
        return Int32 if -(1 << 31) <= x < 1 << 31 else Int64
    return like if like is not None and like.kind == "float" else Float32


def check_numbers(dtype: DType, *xs: Any) -> None:
    """Raises TilefoldError (E5002) for a number that would be another one in the type in which it is computed with."""
    if dtype.kind == "int":
        for x in xs:
            if is_number(x) and not dtype.least <= number_of(x) <= dtype.greatest:
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
