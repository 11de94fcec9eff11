# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Names for annotations, `cute.typing`.

Families of types are among them, as programs ask for them: `issubclass(Float16, Float)`, `isinstance(x, Numeric)`.
"""

from typing import Any, Optional, Type, Union  # noqa: UP035 - programs import them from here

from tilefold.builder.scalars.dtypes import DType
from tilefold.builder.scalars.values import Value
from tilefold.builder.scalars.values import as_value as as_numeric
from tilefold.builder.tensors.address_space import AddressSpace
from tilefold.builder.tensors.tensors import Pointer, Tensor
from tilefold.layout.algebra.core import ComposedLayout, Layout
from tilefold.runtime.arrays.signature import Constexpr

from .dtypes import (
    BFloat16,
    Boolean,
    Float8E4M3FN,
    Float8E5M2,
    Float16,
    Float32,
    Float64,
    Int8,
    Int16,
    Int32,
    Int64,
    TFloat32,
    Uint8,
    Uint16,
    Uint32,
    Uint64,
)
from .runtime import SymInt, sym_int, sym_int32, sym_int64


class _Family(type):
    """A class whose subclasses are types of numbers, and whose instances are values of these types."""

    def holds(cls, dtype: DType) -> bool:
        """Whether a type belongs to the family."""
        return True

    def __instancecheck__(cls, x: object) -> bool:
        return isinstance(x, Value) and cls.holds(x.dtype)

    def __subclasscheck__(cls, kind: object) -> bool:
        return cls.holds(kind) if isinstance(kind, DType) else kind is cls


class _Integers(_Family):
    def holds(cls, dtype: DType) -> bool:
        return dtype.is_integer or dtype.kind == "bool"


class _Floats(_Family):
    def holds(cls, dtype: DType) -> bool:
        return dtype.is_float


class Numeric(metaclass=_Family):
    """Every type of numbers, and every value."""


class Integer(metaclass=_Integers):
    """The types of integers and predicates."""


class Float(metaclass=_Floats):
    """The types of floats."""

    zero, inf, nan = 0.0, float("inf"), float("nan")


NumericMeta = DType
"""The class of types."""

IntTuple = Shape = Stride = Coord = Tile = Tiler = XTuple = Int = Any
"""Integers, or tuples of these: as annotations they say something to readers only."""

__all__ = [
    "AddressSpace", "BFloat16", "Boolean", "ComposedLayout", "Constexpr", "Coord", "Float", "Float16", "Float32",
    "Float64", "Float8E4M3FN", "Float8E5M2", "Int", "Int16", "Int32", "Int64", "Int8", "IntTuple", "Integer", "Layout",
    "Numeric", "NumericMeta", "Optional", "Pointer", "Shape", "Stride", "SymInt", "TFloat32", "Tensor", "Tile",
    "Tiler", "Type", "Uint16", "Uint32", "Uint64", "Uint8", "Union", "XTuple", "as_numeric", "sym_int", "sym_int32",
    "sym_int64",
]  # fmt: skip
