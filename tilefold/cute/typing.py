# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Names for annotations, `cute.typing`."""

from typing import Any, Optional, Type, Union  # noqa: UP035 - programs import them from here

from tilefold.builder.scalars.dtypes import DType
from tilefold.builder.scalars.families import Float, Integer, Numeric
from tilefold.builder.scalars.values import as_value as as_numeric
from tilefold.builder.tensors.address_space import AddressSpace
from tilefold.builder.tensors.tensors import Pointer, Tensor
from tilefold.layout.algebra.core import ComposedLayout, Layout

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

NumericMeta = DType
"""The class of types."""

IntTuple = Shape = Stride = Coord = Tile = Tiler = XTuple = Int = Any
"""Integers, or tuples of these: as annotations they say something to readers only."""

__all__ = [
    "AddressSpace", "BFloat16", "Boolean", "ComposedLayout", "Coord", "Float", "Float16", "Float32", "Float64",
    "Float8E4M3FN", "Float8E5M2", "Int", "Int16", "Int32", "Int64", "Int8", "IntTuple", "Integer", "Layout", "Numeric",
    "NumericMeta", "Optional", "Pointer", "Shape", "Stride", "SymInt", "TFloat32", "Tensor", "Tile", "Tiler", "Type",
    "Uint16", "Uint32", "Uint64", "Uint8", "Union", "XTuple", "as_numeric", "sym_int", "sym_int32", "sym_int64",
]  # fmt: skip
