# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensors that host functions are compiled for, without memory."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from xdsl.dialects.builtin import IntAttr

from tilefold.base.spaces import GMEM
from tilefold.builder.scalars.dtypes import DType
from tilefold.dialects.cute import LayoutAttr
from tilefold.dialects.ptx import SpaceAttr
from tilefold.dialects.tile import TensorType
from tilefold.layout.algebra.core import Layout
from tilefold.layout.algebra.integers import Unknown
from tilefold.runtime.arrays.array import NOWHERE, Array

from ..specialise import name_of_elements


@dataclass(frozen=True, eq=False)
class SymInt:
    """An extent or a stride that each call decides: of 32 or 64 bits, a multiple of `divisibility`."""

    width: int = 32
    divisibility: int = 1

    @property
    def unknown(self) -> Unknown:
        """It in a type."""
        return Unknown(self.width, self.divisibility)

    def rounded_up_quotient(self, divisor: int) -> "SymInt":
        """The integer that it is after `ceil_div` by a number of at least 1."""
        exact = self.divisibility % divisor == 0
        return SymInt(self.width, self.divisibility // divisor if exact else 1)


@dataclass(frozen=True)
class FakeTensor:
    """A description of a tensor, to compile for: shape and strides, and alignment. `symbols` are the integers that are
    `SymInt`, by their places, those of the shape first.
    """

    element_type: DType
    layout: Layout
    align: int
    symbols: Mapping[int, SymInt] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def shape(self) -> Any:
        """The extents."""
        return self.layout.shape

    @property
    def stride(self) -> Any:
        """The strides in elements."""
        return self.layout.stride

    @property
    def tensor_type(self) -> TensorType:
        """The type of the argument."""
        element = self.element_type.in_memory
        return TensorType(element, SpaceAttr(GMEM), IntAttr(self.align), LayoutAttr(self.layout))

    @property
    def is_static(self) -> bool:
        """Whether all extents and strides are known."""
        return not any(isinstance(n, Unknown) for n in (*self.shape, *self.stride))

    @property
    def array(self) -> Array:
        """The array without memory that it describes, with 1 for each open integer."""
        shape, stride = (tuple(1 if isinstance(n, Unknown) else n for n in x) for x in (self.shape, self.stride))
        return Array(self.align, name_of_elements(self.element_type), shape, stride, NOWHERE)
