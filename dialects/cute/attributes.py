# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Layouts, coordinates and tilers as IR attributes: thin wrappers around the values of `tilefold.layout`.

In text each is a quoted string in the notation of the public CuTe IR; a fault inside the quotes is reported at its own
characters.
"""

from collections.abc import Callable
from typing import TypeVar

from xdsl.ir import Data
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from ...layout.core import LayoutLike, Tiler
from ...layout.errors import LayoutError, LayoutSyntaxError
from ...layout.integers import Coord
from ...layout.text import parse_coord, parse_layout, parse_tiler, to_text
from ..errors import raise_at

T = TypeVar("T")


def parse_quoted(parser: AttrParser, parse: Callable[[str], T]) -> T:
    """Parses a string literal by `parse`; its LayoutError becomes a ParseError at the faulty characters."""
    start = parser.pos
    text = parser.parse_str_literal()
    try:
        return parse(text)
    except LayoutSyntaxError as error:
        raise_at(parser, error, start + 1 + error.offset, start + 1 + max(error.end, error.offset + 1))
    except LayoutError as error:
        raise_at(parser, error, start, start + len(text) + 2)


@irdl_attr_definition
class LayoutAttr(Data[LayoutLike]):
    """A layout or composed layout: `"(8,4):(1,8)"`, `"S<3,4,3> o 0 o (8,64):(64,1)"`."""

    name = "cute.layout"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> LayoutLike:
        with parser.in_angle_brackets():
            return parse_quoted(parser, parse_layout)

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(f'"{to_text(self.data)}"')


@irdl_attr_definition
class CoordAttr(Data[Coord]):
    """A coordinate: static integers, `_` for a mode that is kept, `?` for one that an operand gives. `"(?,_,0)"`."""

    name = "cute.coord"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Coord:
        with parser.in_angle_brackets():
            return parse_quoted(parser, parse_coord)

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(f'"{to_text(self.data)}"')


@irdl_attr_definition
class TilerAttr(Data[Tiler]):
    """A tiler: a shape `"(128,32)"`, a layout `"8:1"`, or a tuple of them, `"[(8,2):(2,1);16:1]"`."""

    name = "cute.tile"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Tiler:
        with parser.in_angle_brackets():
            return parse_quoted(parser, parse_tiler)

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(f'"{to_text(self.data)}"')
