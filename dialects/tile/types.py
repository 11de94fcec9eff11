# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensors in memory as types of the IR. A type carries all that is known before the program runs."""

from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import IntAttr, i1
from xdsl.ir import Attribute, ParametrizedAttribute, TypeAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from ...base.errors import Code, LayoutError
from ...base.spaces import RMEM, Allocation, Space, space_named
from ...layout.algebra.core import ComposedLayout, Layout, LayoutLike, cosize, plain_layout
from ...layout.algebra.integers import ScaledBasis, Unknown, divisor
from ...layout.algebra.inttuple import leaves, product, rank
from ...layout.algebra.swizzle import Swizzle
from ...layout.text.layouts import parse_layout, to_text
from ...layout.text.printing import tensor_text
from ..cute import LayoutAttr, parse_quoted
from ..cute.values import with_scalars
from ..definitions import refuse
from ..element_types import PACKED_TYPES
from ..ptx.base import SpaceAttr, parse_space, scalar_bits

MAX_ALIGN = 1 << 16
"""The largest alignment that a tensor's pointer can promise, in bytes."""


@irdl_attr_definition
class TensorType(ParametrizedAttribute, TypeAttribute):
    """`!tile.tensor<f16, gmem, align<16>, "(1024,1024):(1,1024)">`: elements, memory space, alignment, layout.

    The alignment is that of the tensor's pointer in bytes. The layout maps a coordinate to the distance from the
    pointer in elements; a swizzled one (`S<3,4,3> o 0 o ...`) swizzles its offset plus that distance, and the pointer
    stays where the swizzle's period begins.
    """

    name = "tile.tensor"
    element_type: Attribute
    space: SpaceAttr
    align: IntAttr
    layout: LayoutAttr

    @property
    def element_bits(self) -> int:
        """The width of an element in memory; a predicate, i1, takes a byte."""
        bits = scalar_bits(self.element_type)
        assert bits is not None
        return 8 if self.is_predicate else bits

    @property
    def is_predicate(self) -> bool:
        """Whether the elements are predicates, i1."""
        return self.element_type == i1

    @property
    def per_byte(self) -> int:
        """How many elements share a byte: 2 of 4 bits, 8 of one bit, the first in the lowest bits; else 1."""
        return max(1, 8 // self.element_bits)

    @property
    def is_packed(self) -> bool:
        """Whether several elements share a byte, so that only groups of them have an address."""
        return self.element_bits < 8

    @property
    def element_bytes(self) -> int:
        """The bytes from one element to the next, of elements that are not packed."""
        assert not self.is_packed, "packed elements are counted in bits"
        return self.element_bits // 8

    @property
    def step_bits(self) -> int:
        """The distance from one element to the next in eighths of a unit of addresses: in bytes, in bits."""
        return self.space.data.step_bits(self.element_bits)

    @property
    def is_swizzled(self) -> bool:
        """Whether the layout is a swizzle of a plain one, so that the tensor is a pointer and an offset."""
        return isinstance(self.layout.data, ComposedLayout)

    @property
    def plain_layout(self) -> Layout:
        """The layout without its swizzle."""
        return plain_layout(self.layout.data)

    @property
    def bytes(self) -> int:
        """The bytes of memory that hold the elements of a whole tensor. A swizzle permutes blocks of it: whole periods,
        or shorter ones where the indices do not reach all the bits that it reads.
        """
        layout = self.layout.data
        elements = cosize(layout)
        if isinstance(layout, ComposedLayout):
            assert isinstance(layout.inner, Swizzle), "the verifiers check this"
            assert type(layout.offset) is int, "the verifiers check this"
            elements = layout.inner.reach(layout.offset + elements)
        return -(-elements * self.element_bits // 8)

    def check_whole(self) -> None:
        """VerifyException unless the offset within a swizzle is known, as it is where a tensor is allocated or
        passed.
        """
        layout = self.layout.data
        if isinstance(layout, ComposedLayout) and type(layout.offset) is not int:
            raise VerifyException(f"the layout {layout} begins at an unknown offset, which only a part of a tensor may")

    def check_single_elements(self) -> None:
        """VerifyException (E0319) for packed elements, which an operation on one at a time cannot reach."""
        if self.is_packed:
            refuse(
                LayoutError(
                    Code.PACKED_ELEMENTS,
                    f"an element of type {self.element_type} has no address of its own",
                    f"copy whole bytes, {self.per_byte} elements each, by tile.copy",
                )
            )

    def with_layout(self, layout: LayoutLike, align: int | None = None) -> "TensorType":
        """The tensor type with another layout, and another alignment if one is given."""
        return TensorType(
            self.element_type, self.space, self.align if align is None else IntAttr(align), LayoutAttr(layout)
        )

    def verify(self) -> None:
        bits = scalar_bits(self.element_type)
        if self.is_predicate and self.space.data is not RMEM:
            raise VerifyException(f"predicates, i1, are in rmem only, not in {self.space.data.name}")
        if bits is None or (bits % 8 and not self.is_predicate and self.element_type not in PACKED_TYPES):
            raise VerifyException(
                f"the elements of a tensor are integers or floats of whole bytes, i4, si4, ui4 or ui1, "
                f"not {self.element_type}"
            )
        align = self.align.data
        if not 1 <= align <= MAX_ALIGN or align & (align - 1):
            raise VerifyException(f"the alignment is {align}; it must be a power of two from 1 to {MAX_ALIGN}")
        if align * 8 < bits:
            raise VerifyException(f"the alignment is {align} bytes, less than one element of {bits // 8}")
        _check_layout(self.layout.data, self.space.data)
        _check_packed(self.layout.data, self.per_byte)
        if self.is_swizzled and cosize(self.layout.data) * self.element_bits >= 2**34:
            raise VerifyException(f"the swizzled layout {self.layout.data} spans 2^31 bytes or more")

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_attribute(self.element_type)
            layout = to_text(self.layout.data)
            printer.print_string(f', {self.space.data.name}, align<{self.align.data}>, "{layout}"')

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> list[Attribute]:
        with parser.in_angle_brackets():
            element = parser.parse_type()
            parser.parse_punctuation(",")
            space = SpaceAttr(parse_space(parser, space_named, Space.__str__))
            parser.parse_punctuation(",")
            parser.parse_keyword("align")
            with parser.in_angle_brackets():
                align = parser.parse_integer(allow_boolean=False, allow_negative=False)
            parser.parse_punctuation(",")
            return [element, space, IntAttr(align), LayoutAttr(parse_quoted(parser, parse_layout))]


def _check_layout(layout: LayoutLike, space: Space) -> None:
    """Refuses layouts that a tensor cannot have: strides of coordinates, inner functions but swizzles, and run-time
    extents or strides that are swizzled.
    """
    outer = layout
    if isinstance(layout, ComposedLayout):
        if not isinstance(layout.inner, Swizzle):
            raise VerifyException("a tensor's layout may be swizzled, but not composed with another layout")
        match space.allocation:
            case Allocation.COMPILER:
                raise VerifyException("a fragment in rmem has a plain layout: registers have no banks to swizzle for")
            case Allocation.RUN_TIME:
                raise VerifyException(f"a tensor in {space} has a plain layout")
            case Allocation.PARAMETER | Allocation.STATIC | Allocation.MAPPED | Allocation.CONSTANT:
                pass
        if type(layout.offset) is int and layout.offset < 0:
            raise VerifyException(f"the layout {layout} begins at a negative offset")
        outer = layout.outer
    assert isinstance(outer, Layout)
    integers = (*leaves(outer.shape), *leaves(outer.stride))
    if any(isinstance(leaf, ScaledBasis) for leaf in integers):
        raise VerifyException(f"the layout {outer} has the strides of coordinates; those are !tile.coord_tensor's")
    if any(isinstance(leaf, int) and leaf < 0 for leaf in leaves(outer.stride)):
        raise VerifyException(f"the layout {outer} has negative strides")
    if not all(type(leaf) is int for leaf in integers):
        if outer is not layout:
            raise VerifyException(f"a swizzled tensor needs static extents and strides; the layout is {outer}")
        if any(leaf.width not in (32, 64) for leaf in integers if isinstance(leaf, Unknown)):
            raise VerifyException(f"the integers of {outer} that are known only at run time must have 32 or 64 bits")
        return
    if cosize(outer) >= 2**48:
        raise VerifyException(f"the layout {outer} spans {cosize(outer)} elements; at most 2^48 are possible")


def _check_packed(layout: LayoutLike, per_byte: int) -> None:
    """Refuses a swizzle of packed elements that would move some of a byte, or begin within one."""
    if isinstance(layout, ComposedLayout) and per_byte > 1:
        assert isinstance(layout.inner, Swizzle), "checked before"
        offset = divisor(layout.offset)
        if offset % per_byte or (1 << layout.inner.base) % per_byte:
            raise VerifyException(f"the layout {layout} does not keep the {per_byte} elements of a byte together")


MAX_ELEMENTS = 1024
"""The most elements that one print_tensor prints: each becomes a load in the program."""
MAX_VALUES = 16
"""The most values of one call of printf; longer rows are printed in pieces."""


def tensor_header(text: str, type: TensorType, pointer: str, scalars: Sequence[object] = ()) -> str:
    """The line that names a tensor, as CuTe prints it: `gA: gmem_ptr[16b](0x7f...) o (128,32):(1,1024)`.

    `scalars` stand for the `?` of its type.
    """
    kind = type.space.data.pointer
    layout = to_text(with_scalars(type.layout.data, scalars))
    return f"{text}: {tensor_text(kind, type.element_bits, pointer, layout)}"


def elements_in_print_order(layout: LayoutLike) -> list[list[Any]]:
    """The coordinates of a tensor's elements, row by row, as CuTe's print_tensor orders them.

    A tensor of one mode has one element per row; one of two modes has a row for each coordinate of mode 0.
    Further modes follow each other, the third fastest.
    """
    sizes = [product(mode) for mode in (layout.shape if isinstance(layout.shape, tuple) else (layout.shape,))]
    if rank(layout.shape) == 1:
        return [[i] for i in range(sizes[0])]
    rows: list[list[Any]] = []
    outer = 1
    for n in sizes[2:]:
        outer *= n
    for place in range(outer):
        rest: list[int] = []
        for n in sizes[2:]:
            rest.append(place % n)
            place //= n
        rows += [[(m, k, *rest) for k in range(sizes[1])] for m in range(sizes[0])]
    return rows
