# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Layouts as text.

The canonical form is the public CuTe IR's: `(8,(2,?)):(1,(8,?{i64}))`, `S<3,4,3> o 0 o (8,8):(8,1)`, basis
strides `1@0`, tilers `[4:1;_]`. `?{div=8}` and `?{i64 div=8}` add facts about a dynamic integer's
divisors. The C++ style `(_128,_32):(_1,_128)`, `Sw<3,4,3>`, `<4:1;8>` is read as well, and written by
`to_cxx`.

Text is not trusted: its length, depth, number of integers and their magnitude are bounded, and whatever
does not parse raises `LayoutSyntaxError` with the characters at fault.
"""

from typing import Any

from ...base.errors import Code, LayoutError
from ..algebra.core import ComposedLayout, Layout, LayoutLike
from ..algebra.integers import AnyTuple, ScaledBasis, Tree, Unknown
from ..algebra.inttuple import leaves
from ..algebra.swizzle import Swizzle
from .parser import Parser, one_of


def parse_layout(text: str) -> LayoutLike:
    """A layout or a composed layout, from `shape:stride` or `inner o offset o outer`.

    Extents must be positive and the shape congruent to the stride.
    """
    return Parser(text).whole(Parser.layout)


def parse_coord_tensor(text: str) -> tuple[AnyTuple, Layout]:
    """The start and the layout of a coordinate tensor, from `(0,?) o (8,4):(1@0,1@1)` or from only the layout."""
    return Parser(text).whole(Parser.coord_tensor)


def parse_int_tuple(text: str) -> AnyTuple:
    """A shape, stride, offset or other tuple of integers, from `(8,(2,?))` or `(1@0,1@1)`."""
    return Parser(text).whole(Parser.int_tuple)


def parse_coord(text: str) -> AnyTuple:
    """A coordinate, from `(1,(_,?))`; `_` becomes None."""
    return Parser(text).whole(Parser.coord)


def parse_tiler(text: str) -> AnyTuple:
    """A tiler, from `[4:1;_]`, `<4:1;8>`, a layout, or a tuple of extents and underscores `(32,_)`."""
    return Parser(text).whole(Parser.tiler)


def parse_swizzle(text: str) -> Swizzle:
    """A swizzle, from `S<3,4,3>` or `Sw<3,4,3>`."""
    return Parser(text).whole(Parser.swizzle)


def parse_any(text: str) -> Any:
    """The layout, composed layout, swizzle, tiler or tuple that the text describes."""
    return Parser(text).whole(one_of)


def to_text(x: Any) -> str:
    """The canonical text of a layout, composed layout, swizzle, tiler or tuple, which parses back to the
    same value.

    Raises `LayoutError` (E0103) for an integer beyond 64 bits.
    """
    return _text(x, "", "S")


def to_cxx(x: Any) -> str:
    """The text in the style of CuTe C++: static integers `_8`, dynamic ones by their value (or `?`),
    `Sw<3,4,3>`.
    """
    return _text(x, "_", "Sw")


def _text(x: "Tree | ComposedLayout | Swizzle", mark: str, swizzle: str) -> str:
    if isinstance(x, tuple):
        if any(type(leaf) is Layout for leaf in leaves(x)):
            return "[" + ";".join([_text(y, mark, swizzle) for y in x]) + "]"
        return "(" + ",".join([_text(y, mark, swizzle) for y in x]) + ")"
    if type(x) is int:
        if not -(1 << 63) <= x < 1 << 63:
            raise LayoutError(Code.TEXT_INTEGER_RANGE, f"an integer of {x.bit_length()} bits does not fit in 64")
        return f"{mark}{x}"
    if x is None:
        return "_"
    if type(x) is Layout:
        return f"{_text(x.shape, mark, swizzle)}:{_text(x.stride, mark, swizzle)}"
    if type(x) is ComposedLayout:
        return " o ".join([_text(part, mark, swizzle) for part in (x.inner, x.offset, x.outer)])
    if type(x) is Swizzle:
        return f"{swizzle}<{x.bits},{x.base},{x.shift}>"
    if type(x) is ScaledBasis:
        return "@".join([_text(x.value, mark, swizzle), *map(str, reversed(x.path))])
    if type(x) is Unknown:
        return "?" if mark else str(x)
    return str(x)
