# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Layouts, coordinates and tilers as IR attributes: thin wrappers around the values of `tilefold.layout`.

In text each is a quoted string in the notation of the public CuTe IR; a fault inside the quotes is reported at its own
characters.
"""

from collections.abc import Callable
from typing import Any, ClassVar, Generic, TypeVar

from xdsl.ir import Data
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from ...base.errors import LayoutSyntaxError
from ...layout.algebra.core import LayoutLike, Tiler
from ...layout.algebra.integers import Coord, IntTuple
from ...layout.algebra.swizzle import Swizzle
from ...layout.text.layouts import parse_coord, parse_int_tuple, parse_layout, parse_swizzle, parse_tiler, to_text
from ..definitions import raise_at

T = TypeVar("T")


class QuotedAttr(Data[T], Generic[T]):
    """The base of the attributes; `READ` parses the text in quotes, `WRITE` writes it."""

    READ: ClassVar[Callable[[str], Any]]
    WRITE: ClassVar[Callable[[Any], str]] = staticmethod(to_text)

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> T:
        with parser.in_angle_brackets():
            return parse_quoted(parser, cls.READ)

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(f'"{type(self).WRITE(self.data)}"')


def parse_quoted(parser: AttrParser, parse: Callable[[str], T]) -> T:
    """Parses a string literal by `parse`; its LayoutSyntaxError becomes a ParseError at the faulty characters."""
    start = parser.pos
    text = parser.parse_str_literal()
    try:
        return parse(text)
    except LayoutSyntaxError as error:
        raise_at(parser, error, start + 1 + error.offset, start + 1 + max(error.end, error.offset + 1))


@irdl_attr_definition
class IntTupleAttr(QuotedAttr[IntTuple]):
    """An integer or a nested tuple of integers: `"(8,(?,4))"`."""

    name = "cute.int_tuple"
    READ = staticmethod(parse_int_tuple)


@irdl_attr_definition
class ShapeAttr(QuotedAttr[IntTuple]):
    """A shape: `"(8,(?,4))"`."""

    name = "cute.shape"
    READ = staticmethod(parse_int_tuple)


@irdl_attr_definition
class StrideAttr(QuotedAttr[IntTuple]):
    """A stride, of integers or bases: `"(1,(?,8))"`, `"(1@0,1@1)"`."""

    name = "cute.stride"
    READ = staticmethod(parse_int_tuple)


@irdl_attr_definition
class LayoutAttr(QuotedAttr[LayoutLike]):
    """A layout `"(8,4):(1,8)"`, or a composed one, `"S<3,4,3> o 0 o (8,64):(64,1)"`, in the `tile` dialect."""

    name = "cute.layout"
    READ = staticmethod(parse_layout)


@irdl_attr_definition
class ComposedLayoutAttr(QuotedAttr[LayoutLike]):
    """A composed layout: `"S<3,4,3> o 0 o (8,64):(64,1)"`."""

    name = "cute.composed_layout"
    READ = staticmethod(parse_layout)


@irdl_attr_definition
class SwizzleAttr(QuotedAttr[Swizzle]):
    """A swizzle: `"S<3,4,3>"`."""

    name = "cute.swizzle"
    READ = staticmethod(parse_swizzle)


@irdl_attr_definition
class CoordAttr(QuotedAttr[Coord]):
    """A coordinate: static integers, `_` for a mode that is kept, `?` for one that an operand gives. `"(?,_,0)"`."""

    name = "cute.coord"
    READ = staticmethod(parse_coord)


@irdl_attr_definition
class TilerAttr(QuotedAttr[Tiler]):
    """A tiler: a shape `"(128,32)"`, a layout `"8:1"`, or a tuple of them, `"[(8,2):(2,1);16:1]"`."""

    name = "cute.tile"
    READ = staticmethod(parse_tiler)


QUOTED_ATTRIBUTES = (
    IntTupleAttr, CoordAttr, ShapeAttr, StrideAttr, LayoutAttr, TilerAttr, ComposedLayoutAttr, SwizzleAttr,
)  # fmt: skip
"""The attributes of the dialect."""
