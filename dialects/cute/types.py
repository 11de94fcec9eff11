# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The eight types of the public CuTe IR. A type holds a whole value, with `?` for run-time integers.

Each is written with its value in quotes: `!cute.layout<"(?,8):(1,?)">`. Notation and rules are those of the public
`cute` dialect (CuTeTypes.td there); the value is that of `tilefold.layout`.
"""

from collections.abc import Callable
from typing import Any, ClassVar

from xdsl.ir import Data, TypeAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from ...base.errors import Code, LayoutError
from ...layout.algebra.core import ComposedLayout, Layout, make_layout
from ...layout.algebra.integers import Tree, Unknown
from ...layout.algebra.swizzle import Swizzle
from ...layout.text.layouts import parse_coord, parse_int_tuple, parse_layout, parse_swizzle, parse_tiler, to_text
from ..definitions import refusing
from .attributes import parse_quoted
from .value_rules import check_composed, check_layout, check_leaves, check_strides, check_tile
from .values import AnyValue, is_static_value, public


class CuteType(Data[Any], TypeAttribute):
    """The base of the types. `READ` parses the text in quotes; `check` refuses a value out of place."""

    READ: ClassVar[Callable[[str], Any]]

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> AnyValue:
        with parser.in_angle_brackets():
            return parse_quoted(parser, cls.READ)

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(f'"{self.text}"')

    @classmethod
    def of(cls, value: Any) -> "CuteType":
        """The type of a computed value. Raises `LayoutError` if no value of the type can be that."""
        value = public(value)
        cls.check(value)
        return cls(value)

    @classmethod
    def check(cls, value: object) -> None:
        """Raises `LayoutError` unless `value` may stand in this type."""
        raise NotImplementedError

    def verify(self) -> None:
        with refusing():
            self.check(self.data)

    @property
    def text(self) -> str:
        """The canonical text of the value."""
        return self.show(self.data)

    @classmethod
    def show(cls, value: object) -> str:
        """The text of a value of this kind, whose integers may be of any sort."""
        return to_text(value)

    @property
    def is_static(self) -> bool:
        """Whether the whole value is known."""
        return is_static_value(self.data)


@irdl_attr_definition
class IntTupleType(CuteType):
    """An integer or a nested tuple of integers: `!cute.int_tuple<"(?,(8,?{i64}))">`."""

    name = "cute.int_tuple"
    READ = staticmethod(parse_int_tuple)

    @classmethod
    def check(cls, value: object) -> None:
        check_leaves(value, int, Unknown)


@irdl_attr_definition
class CoordType(CuteType):
    """A coordinate: integers, and `_` for a mode that is kept: `!cute.coord<"(_,(?,3))">`."""

    name = "cute.coord"
    READ = staticmethod(parse_coord)

    @classmethod
    def check(cls, value: object) -> None:
        check_leaves(value, int, Unknown, type(None))


@irdl_attr_definition
class ShapeType(CuteType):
    """Extents: `!cute.shape<"(?,(8,4))">`. An extent may be 0 here; a layout asks for positive ones."""

    name = "cute.shape"
    READ = staticmethod(parse_int_tuple)

    @classmethod
    def check(cls, value: object) -> None:
        check_leaves(value, int, Unknown)


@irdl_attr_definition
class StrideType(CuteType):
    """Strides: integers, or scaled bases: `!cute.stride<"(1,?)">`, `!cute.stride<"(1@0,?@1)">`."""

    name = "cute.stride"
    READ = staticmethod(parse_int_tuple)

    @classmethod
    def check(cls, value: object) -> None:
        check_strides(value)


@irdl_attr_definition
class LayoutType(CuteType):
    """A layout `shape:stride`: `!cute.layout<"(8,(2,?)):(1,(8,16))">`."""

    name = "cute.layout"
    READ = staticmethod(parse_layout)

    @classmethod
    def check(cls, value: object) -> None:
        if type(value) is not Layout:
            raise LayoutError(
                Code.TEXT_WRONG_KIND, f"{value} is a composed layout", "its type is !cute.composed_layout"
            )
        check_layout(value)


def _read_tile(text: str) -> AnyValue:
    tiler: Tree = parse_tiler(text)
    if not isinstance(tiler, tuple) or not text.lstrip().startswith("["):
        return _as_layout(tiler)
    return tuple([part if isinstance(part, tuple) else _as_layout(part) for part in tiler])


def _as_layout(tile: AnyValue) -> AnyValue:
    return tile if tile is None or type(tile) is Layout else make_layout(tile)


@irdl_attr_definition
class TileType(CuteType):
    """A tiler: a layout or `_` for each mode, nested: `!cute.tile<"[4:1;[(2,2):(1,8);_]]">`.

    Where extents are written alone, they stand for their compact layout.
    """

    name = "cute.tile"
    READ = staticmethod(_read_tile)

    @classmethod
    def check(cls, value: Any) -> None:
        check_tile(value)

    @classmethod
    def show(cls, value: Any) -> str:
        return _tile_text(value)


def _tile_text(value: Tree) -> str:
    if isinstance(value, tuple):
        return "[" + ";".join([_tile_text(part) for part in value]) + "]"
    return to_text(value)


@irdl_attr_definition
class ComposedLayoutType(CuteType):
    """A layout composed with a swizzle or another layout: `!cute.composed_layout<"S<3,4,3> o 0 o (8,?):(1,8)">`."""

    name = "cute.composed_layout"
    READ = staticmethod(parse_layout)

    @classmethod
    def check(cls, value: object) -> None:
        if type(value) is not ComposedLayout:
            raise LayoutError(Code.TEXT_WRONG_KIND, f"{value} is a plain layout", "its type is !cute.layout")
        check_composed(value)


@irdl_attr_definition
class SwizzleType(CuteType):
    """A swizzle, always static: `!cute.swizzle<"S<3,4,3>">`."""

    name = "cute.swizzle"
    READ = staticmethod(parse_swizzle)

    @classmethod
    def check(cls, value: object) -> None:
        assert type(value) is Swizzle
        if value.bits + value.base + abs(value.shift) > 32:
            raise LayoutError(Code.SWIZZLE_INVALID, f"{value} reaches beyond the 32 bits of an index")


def type_of(value: object, kind: type[CuteType]) -> CuteType:
    """The type of a computed value of a kind; for the kinds of layouts, that of the layout or composed layout it is."""
    if kind in (LayoutType, ComposedLayoutType):
        kind = LayoutType if type(value) is Layout else ComposedLayoutType
    return kind.of(value)


CUTE_TYPES = (
    IntTupleType, CoordType, ShapeType, StrideType, LayoutType, TileType, ComposedLayoutType, SwizzleType,
)  # fmt: skip
"""The types of the dialect."""
