# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How the simulator represents the values of a kernel.

A warp executes each operation once for all of its lanes. A value that is the same in every lane is *uniform*:
an integer, index or pointer is a Python `int` (signed, in the range of its type), an i1 a `bool`, a float a
NumPy scalar, a vector an array of shape (1, n). Any other value is an array over the lanes: of shape
(lanes,), for a vector (lanes, n). Lanes that do not execute an operation hold arbitrary numbers in its
result.

Narrow floats and fused multiply-adds are rounded once, to the nearest even number. ml_dtypes converts double precision
to bf16 by way of f32, which rounds twice; rounding to odd on the way makes the last rounding right (Boldo and
Melquiond, Emulation of FMA and correctly rounded sums, 2008).
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeAlias, TypeGuard, TypeVar, cast

import numpy as np
from xdsl.dialects.builtin import IndexType, IntegerType, VectorType
from xdsl.ir import Attribute

from ....dialects.element_types import FLOATS, NARROW_FLOATS, PACKED_TYPES, element_of
from ....dialects.ptx import PtrType, TensorMapType, scalar_bits
from ...engine import NumPyArray, NumPyType, numpy_type

Value: TypeAlias = Any
"""A uniform value, an array over lanes, a tensor's address (`TensorValue`), or a tuple of a `cute` value's integers."""
ResultT = TypeVar("ResultT")
Lanes: TypeAlias = NumPyArray
"""An array whose first axis is the lanes of a warp."""
FAR = 1 << 62
"""The distance, in bytes, beyond which no memory is; aligned to any size."""
_NEAR = 1 << 32


@dataclass(frozen=True, slots=True)
class ValueKind:
    """The NumPy side of a type: element `dtype`, `bits` of an element, `count` of a vector (None for a
    scalar).
    """

    dtype: NumPyType
    bits: int
    count: int | None = None

    @property
    def bytes(self) -> int:
        """Bytes in memory of the whole value; an i1 takes one."""
        return max(self.bits // 8, 1) * (self.count or 1)

    @property
    def is_float(self) -> bool:
        """Whether the elements are floating-point numbers."""
        return self.dtype.kind not in "bi"

    @property
    def unsigned(self) -> NumPyType:
        """The unsigned integer type of the same width."""
        return np.dtype(f"u{max(self.bits, 8) // 8}")


_INTEGERS = {width: ValueKind(np.dtype(f"i{width // 8}"), width) for width in (8, 16, 32, 64)}
_BOOL = ValueKind(np.dtype(bool), 1)
_FLOATS = {
    **{type: ValueKind(numpy_type(element), element.bits) for type, element in FLOATS.items()},
    **{
        type: ValueKind(numpy_type(element), 8)
        for type, element in NARROW_FLOATS.items()
        if element.memory_bits == 8  # the others are no values, only elements
    },
}


def kind_of(type: Attribute) -> ValueKind | None:
    """The kind of a scalar, pointer or 1-D vector type; None for a type without numbers or one that is not
    supported.
    """
    if isinstance(type, IndexType | PtrType | TensorMapType):
        return _INTEGERS[64]
    if isinstance(type, IntegerType):
        bits = scalar_bits(cast(Attribute, type))
        return _BOOL if bits == 1 else _INTEGERS.get(bits or 0)
    if isinstance(type, VectorType):
        vector = cast("VectorType[Attribute]", type)
        element, shape = kind_of(vector.element_type), vector.get_shape()
        if element is None or len(shape) != 1 or isinstance(vector.element_type, VectorType):
            return None
        return ValueKind(element.dtype, element.bits, shape[0])
    return _FLOATS.get(type.__class__)


def element_kind(type: Attribute) -> ValueKind | None:
    """The kind of a tensor's elements in an array, where those narrower than a byte take one each; None as `kind_of`.

    Integers without a sign are read as signed ones. In storage, narrow elements are packed (runtime.packing).
    """
    element = element_of(type) if type in PACKED_TYPES else None
    return kind_of(type) if element is None else ValueKind(numpy_type(element), element.bits)


@dataclass(frozen=True, slots=True, eq=False)
class CoordTensorValue:
    """A coordinate tensor in registers: the coordinate at which it starts, and the values of the `?` of its layout."""

    start: Any
    scalars: tuple[Value, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class TensorValue:
    """A tensor in registers: the byte address of its pointer, the inner offset of a swizzled layout in elements, the
    values of the `?` of its type, and a `Guard` where it is of a ragged tile.
    """

    address: Value
    offset: Value = 0
    scalars: tuple[Value, ...] = ()
    guard: Any = None


def varies(value: Value) -> TypeGuard[Lanes]:
    """Whether a value is kept as an array: one per lane, or a vector."""
    return isinstance(value, np.ndarray)


def anywhere(condition: Value) -> bool:
    """Whether a condition holds in any lane. Much faster than `np.any` where it is uniform."""
    return bool(condition.any()) if varies(condition) else bool(condition)


def memoise(function: Callable[..., ResultT]) -> Callable[..., ResultT]:
    """A pure function of values that keeps its latest results for integers that are the same in all lanes."""
    kept = lru_cache(maxsize=1024)(function)

    def call(*values: Value) -> ResultT:
        for value in values:
            if type(value) is not int:
                return function(*values)
        return kept(*values)

    return call


def per_lane(value: Value, lanes: int, kind: ValueKind) -> Lanes:
    """`value` as an array over `lanes` lanes (read-only where it was uniform)."""
    if varies(value):
        return value if value.shape[0] == lanes else np.broadcast_to(value, (lanes, *value.shape[1:]))
    return np.full(lanes, value, kind.dtype)


def merge(chosen: Lanes, ours: Value, theirs: Value, kind: ValueKind | None) -> Value:
    """`ours` in the lanes where `chosen` holds, `theirs` in the others. `kind` is None for a tensor and a tuple."""
    if ours is theirs:
        return ours
    if isinstance(ours, tuple):
        pairs = zip(cast(tuple[Value, ...], ours), theirs, strict=True)
        return tuple([merge(chosen, a, b, _INTEGERS[64]) for a, b in pairs])
    if isinstance(ours, CoordTensorValue):
        assert isinstance(theirs, CoordTensorValue)
        start, scalars = merge(chosen, (ours.start, ours.scalars), (theirs.start, theirs.scalars), kind)
        return CoordTensorValue(start, scalars)
    if isinstance(ours, TensorValue):
        assert isinstance(theirs, TensorValue)
        index = _INTEGERS[64]
        return TensorValue(
            merge(chosen, ours.address, theirs.address, index),
            merge(chosen, ours.offset, theirs.offset, index),
            tuple([merge(chosen, a, b, index) for a, b in zip(ours.scalars, theirs.scalars, strict=True)]),
            ours.guard,
        )
    assert kind is not None
    if kind.count is not None:
        chosen = chosen[:, None]
    elif type(ours) is type(theirs) is int and ours == theirs:
        return ours
    return choose(chosen, _with_type(ours, kind), _with_type(theirs, kind))


def choose(condition: Value, ours: Value, theirs: Value) -> Value:
    """NumPy's `where`, for values of one type."""
    return cast(Any, np.where(condition, ours, theirs))


def _with_type(value: Value, kind: ValueKind) -> Value:
    return value if varies(value) else kind.dtype.type(value)


def not_far(value: Value) -> Value:
    """An integer, or the nearest one to which a small one can be added in 64 bits."""
    if varies(value):
        return np.clip(value, -FAR, FAR).astype(np.int64)
    return min(max(value, -FAR), FAR)


def add_address(address: Value, offset: Value) -> Value:
    """An address plus a signed offset of any width, no further than `FAR` from 0 where it could wrap otherwise."""
    if not varies(offset):
        if varies(address) and -_NEAR < offset < _NEAR:
            return address + offset
    elif offset.dtype != np.int64:
        return address + offset.astype(np.int64)
    return not_far(address + not_far(offset))


def signed_view(value: Lanes, kind: ValueKind) -> Lanes:
    """Unsigned lanes as the signed type of `kind`, bit for bit."""
    return np.ascontiguousarray(value).view(kind.dtype)


def as_unsigned(value: Value, kind: ValueKind) -> Value:
    """An integer value read as unsigned: Python ints stay ints, arrays change their type."""
    if varies(value):
        return np.ascontiguousarray(value).view(kind.unsigned)
    return int(value) & ((1 << kind.bits) - 1)


def narrow(value: object, dtype: NumPyType) -> Any:
    """Double-precision numbers as `dtype`: an array of the same shape, or a scalar for no dimensions."""
    value = np.asarray(value, np.float64)
    if dtype.kind == "f":
        return value.astype(dtype)[()]
    single = value.astype(np.float32)
    difference = value - single.astype(np.float64)
    return to_odd(single, difference, np.dtype(np.int32)).astype(dtype)[()]


def to_odd(nearest: NumPyArray, error: NumPyArray, bits: NumPyType) -> NumPyArray:
    """The number next to the exact one whose last bit is odd, from the nearest one and its error.

    `bits` is the integer type of the width of `nearest`. Exact numbers, infinities and NaN stay.
    """
    even = (nearest.view(bits) & 1) == 0
    inexact = even & np.isfinite(nearest) & (error != 0)
    infinity = np.array(np.inf, nearest.dtype)
    return np.where(inexact, np.nextafter(nearest, np.where(error > 0, infinity, -infinity)), nearest)


def fused_multiply_add(a: object, b: object, c: object, dtype: NumPyType) -> Any:
    """a * b + c, rounded once to `dtype`, the type of all three."""
    if dtype.itemsize == 8:
        return _fused_doubles(np.asarray(a, np.float64), np.asarray(b, np.float64), np.asarray(c, np.float64))[()]
    # The product is exact, since the significands have at most 24 bits each.
    product = np.asarray(a, np.float64) * np.asarray(b, np.float64)
    addend = np.asarray(c, np.float64)
    total = np.asarray(product + addend)
    part = total - product
    error = (product - (total - part)) + (addend - part)
    return narrow(to_odd(total, error, np.dtype(np.int64)), dtype)


def _fused_doubles(a: NumPyArray, b: NumPyArray, c: NumPyArray) -> NumPyArray:
    """a * b + c in f64 (Boldo and Melquiond, Emulation of FMA and Correctly Rounded Sums, 2008).

    The method takes the error of a product as a number of f64, so it needs products that are neither large nor small;
    others are computed one by one.
    """
    product = np.asarray(a * b)
    high_a, high_b = _upper_half(a), _upper_half(b)
    low_a, low_b = a - high_a, b - high_b
    product_error = low_a * low_b - (((product - high_a * high_b) - low_a * high_b) - high_a * low_b)
    low, low_error = _two_sum(c, product_error)
    high, high_error = _two_sum(product, low)
    result = np.asarray(high + to_odd(*_two_sum(low_error, high_error), np.dtype(np.int64)))
    is_zero = (a == 0) | (b == 0)
    is_usual = (np.abs(product) > 2.0**-900) & (np.abs(product) < 2.0**1000) & (np.abs(c) < 2.0**1000)
    is_usual &= (np.abs(a) < 2.0**900) & (np.abs(b) < 2.0**900)
    result = np.where(is_zero, product + c, result)
    rest = ~(is_zero | is_usual)
    if rest.any():
        every = np.broadcast_arrays(a, b, c)
        result[rest] = [_fma_exact(*map(float, x)) for x in zip(*[x[rest] for x in every], strict=True)]
    return result


def _upper_half(x: NumPyArray) -> NumPyArray:
    """The upper 26 bits of the significands of f64 (Dekker)."""
    scaled = x * (2.0**27 + 1)
    return np.asarray(scaled - (scaled - x))


def _two_sum(a: Any, b: Any) -> tuple[NumPyArray, NumPyArray]:
    """The sum in f64, and its error (Knuth)."""
    total = np.asarray(a + b)
    part = total - a
    return total, np.asarray((a - (total - part)) + (b - part))


def _fma_exact(a: float, b: float, c: float) -> float:
    if not (np.isfinite(a) and np.isfinite(b)):
        return a * b + c
    if not np.isfinite(c):
        return c  # also where a * b is beyond f64
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if exact == 0:
        return a * b + c  # keeps the sign of a zero
    try:
        return float(exact)
    except OverflowError:
        return float("inf") if exact > 0 else float("-inf")


def round_to_tf32(x: object) -> Any:
    """An f32 rounded at bit 13 of its significand, half away from zero (PTX ISA, cvt.rna); infinities and NaN stay."""
    bits = np.asarray(x, np.float32).view(np.uint32)
    rounded = (bits + np.uint32(0x1000)) & np.uint32(0xFFFFE000)
    return np.where((bits & 0x7F800000) == 0x7F800000, bits, rounded).astype(np.uint32).view(np.float32)[()]
