# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensors that host functions are compiled for, without memory, and addresses as their arguments."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import gcd
from types import MappingProxyType
from typing import Any

from xdsl.dialects.builtin import IntAttr

from tilefold.base.errors import Code, TilefoldError
from tilefold.base.spaces import GMEM
from tilefold.builder.scalars.dtypes import DType
from tilefold.dialects.cute import LayoutAttr
from tilefold.dialects.ptx import SpaceAttr
from tilefold.dialects.tile import TensorType
from tilefold.layout.algebra.core import Layout
from tilefold.layout.algebra.integers import Unknown
from tilefold.runtime.arrays.array import HOST, NOWHERE, Array
from tilefold.runtime.arrays.signature import ALIGN, Dynamic, Marked
from tilefold.runtime.errors import LaunchError

from ..specialise import name_of_elements


@dataclass(frozen=True, eq=False)
class SymInt:
    """An extent or a stride that each call decides: of 32 or 64 bits, a multiple of `divisibility`. Sums, differences,
    products and quotients with others and with numbers are such integers too, of which the divisor is known; a call
    decides them by themselves, wherever the same object stands.
    """

    width: int = 32
    divisibility: int = 1

    @property
    def unknown(self) -> Unknown:
        """It in a type."""
        return Unknown(self.width, self.divisibility)

    def __add__(self, other: "SymInt | int") -> "SymInt":
        return self._with(gcd(self.divisibility, _divisor(other)), other)

    __radd__ = __sub__ = __rsub__ = __add__

    def __mul__(self, other: "SymInt | int") -> "SymInt":
        return self._with(self.divisibility * _divisor(other), other)

    __rmul__ = __mul__

    def _with(self, divisibility: int, other: "SymInt | int") -> "SymInt":
        width = max(self.width, other.width) if isinstance(other, SymInt) else self.width
        return SymInt(width, max(divisibility, 1))

    def __floordiv__(self, divisor: "SymInt | int") -> "SymInt":
        if isinstance(divisor, SymInt):
            return SymInt(self.width)
        if divisor == 0:
            raise TilefoldError(Code.BAD_ARGUMENT, "division of a SymInt by zero")
        return SymInt(self.width, 1 if self.divisibility % divisor else self.divisibility // divisor)

    def ceil_div(self, a: "SymInt | int", b: "SymInt | int") -> "SymInt":
        """`a / b` rounded up; one of them is this integer. An inexact quotient has no known divisor, however it is
        rounded.
        """
        return a // b if isinstance(a, SymInt) else SymInt(self.width)


def _divisor(x: SymInt | int) -> int:
    return x.divisibility if isinstance(x, SymInt) else abs(x)


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


class Pointer:
    """An address in global memory as an argument, of elements of a type: `make_ptr` makes it."""

    def __init__(self, dtype: DType, address: int, align: int) -> None:
        if address % align:
            message = f"the address {address:#x} is not a multiple of {align} bytes"
            raise LaunchError(Code.RUN_ARGUMENT, message, "promise less")
        self.dtype, self.address, self.align = dtype, address, align
        self._pointer = address  # programs free the memory by this name

    @property
    def __tilefold_pointer__(self) -> FakeTensor | Marked:
        """The elements from the address on, of any number."""
        layout = Layout((Unknown(),), (1,))
        if not self.address:
            return FakeTensor(self.dtype, layout, self.align)
        from tilefold.runtime.cuda import is_available

        array = Array(self.address, name_of_elements(self.dtype), (1,), (1,), 0 if is_available() else HOST)
        return Marked(array, Dynamic(modes=0, align=min(self.align, ALIGN)))

    @property
    def element_type(self) -> DType:
        """The type of the elements."""
        return self.dtype

    value_type = element_type

    def __repr__(self) -> str:
        return f"Ptr<{self.dtype}, {self.address:#x}, align<{self.align}>>"
