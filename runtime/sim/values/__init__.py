# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How the simulator represents the values of a kernel.

A warp executes each operation once for all of its lanes. A value that is the same in every lane is *uniform*:
an integer, index or pointer is a Python `int` (signed, in the range of its type), an i1 a `bool`, a float a
NumPy scalar, a vector an array of shape (1, n). Any other value is an array over the lanes: of shape
(lanes,), for a vector (lanes, n). Lanes that do not execute an operation hold arbitrary numbers in its
result.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias, TypeGuard, TypeVar, cast

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import IndexType, IntegerType, VectorType
from xdsl.ir import Attribute
from xdsl.utils.hints import isa

from ....dialects.element_types import FLOATS, PACKED_TYPES, element_of
from ....dialects.ptx import PtrType, TensorMapType, scalar_bits
from ...engine import numpy_type

Value: TypeAlias = Any
"""A uniform value, an array over lanes, a tensor's address (`TensorValue`), or a tuple of a `cute` value's integers."""
ResultT = TypeVar("ResultT")
Lanes: TypeAlias = NDArray[Any]
"""An array whose first axis is the lanes of a warp."""


@dataclass(frozen=True, slots=True)
class Kind:
    """The NumPy side of a type: element `dtype`, `bits` of an element, `count` of a vector (None for a
    scalar).
    """

    dtype: np.dtype[Any]
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
    def unsigned(self) -> np.dtype[Any]:
        """The unsigned integer type of the same width."""
        return np.dtype(f"u{max(self.bits, 8) // 8}")


_INTEGERS = {width: Kind(np.dtype(f"i{width // 8}"), width) for width in (8, 16, 32, 64)}
_BOOL = Kind(np.dtype(bool), 1)
_FLOATS = {type: Kind(numpy_type(element), element.bits) for type, element in FLOATS.items()}


def kind_of(type: Attribute) -> Kind | None:
    """The kind of a scalar, pointer or 1-D vector type; None for a type without numbers or one that is not
    supported.
    """
    if isinstance(type, IndexType | PtrType | TensorMapType):
        return _INTEGERS[64]
    if isinstance(type, IntegerType):
        bits = scalar_bits(cast(Attribute, type))
        return _BOOL if bits == 1 else _INTEGERS.get(bits or 0)
    if isa(type, VectorType[Attribute]):
        element = kind_of(type.element_type)
        shape = type.get_shape()
        if element is None or len(shape) != 1 or isinstance(type.element_type, VectorType):
            return None
        return Kind(element.dtype, element.bits, shape[0])
    return _FLOATS.get(type.__class__)


def element_kind(type: Attribute) -> Kind | None:
    """The kind of a tensor's elements in an array, where those narrower than a byte take one each; None as `kind_of`.

    Integers without a sign are read as signed ones. In storage, narrow elements are packed (runtime.packing).
    """
    element = element_of(type) if type in PACKED_TYPES else None
    return kind_of(type) if element is None else Kind(numpy_type(element), element.bits)


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


def per_lane(value: Value, lanes: int, kind: Kind) -> Lanes:
    """`value` as an array over `lanes` lanes (read-only where it was uniform)."""
    if varies(value):
        return value if value.shape[0] == lanes else np.broadcast_to(value, (lanes, *value.shape[1:]))
    return np.full(lanes, value, kind.dtype)


def merge(chosen: Lanes, ours: Value, theirs: Value, kind: Kind | None) -> Value:
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


def _with_type(value: Value, kind: Kind) -> Value:
    return value if varies(value) else kind.dtype.type(value)


def signed_view(value: Lanes, kind: Kind) -> Lanes:
    """Unsigned lanes as the signed type of `kind`, bit for bit."""
    return np.ascontiguousarray(value).view(kind.dtype)


def as_unsigned(value: Value, kind: Kind) -> Value:
    """An integer value read as unsigned: Python ints stay ints, arrays change their type."""
    if varies(value):
        return np.ascontiguousarray(value).view(kind.unsigned)
    return int(value) & ((1 << kind.bits) - 1)
