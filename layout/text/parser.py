# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The parser behind `layouts`: recursive descent over one string, with the offset of every mistake."""

import re
from collections.abc import Callable
from typing import Any, Literal, NoReturn, Self, TypeVar

from ...base.errors import Code, LayoutError, LayoutSyntaxError
from ..algebra.axes import coprofile
from ..algebra.core import ComposedLayout, Layout, LayoutLike
from ..algebra.integers import AnyTuple, IntTuple, ScaledBasis, Unknown
from ..algebra.inttuple import MAX_LEAVES, congruent, leaves, product
from ..algebra.swizzle import Swizzle

MAX_TEXT = 1 << 16
"""The longest text, in characters."""
MAX_DEPTH = 32
"""The deepest nesting of tuples."""

_T = TypeVar("_T")
_SPACE = re.compile(r"[ \t\r\n]*")
_INTEGER = re.compile(r"-?[0-9]+")
_DYNAMIC_NOTES = re.compile(r"\{ *(?:i([1-9][0-9]{0,3})(?= |\}))? *(?:div=([0-9]+))? *\}")
_LIMIT = 1 << 63

NotationKind = Literal["shape", "stride", "tuple", "coord"]


def size_fits(shape: IntTuple) -> bool:
    """Whether the product of the static extents of a shape fits in 64 bits."""
    return product(tuple([s for s in leaves(shape) if type(s) is int])) < _LIMIT


class Parser:
    """Parses one text; `pos` is the offset of the next character."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.pos: int = 0
        self.depth = 0
        self.count = 0
        if len(text) > MAX_TEXT:
            self.fail(
                f"the text is {len(text)} characters long; the limit is {MAX_TEXT}", 0, len(text), Code.TEXT_TOO_LARGE
            )

    def fail(
        self,
        message: str,
        start: int | None = None,
        end: int | None = None,
        code: Code = Code.TEXT_SYNTAX,
        hint: str = "",
    ) -> NoReturn:
        """Raises `LayoutSyntaxError` for `text[start:end]`, by default the next character."""
        start = self.pos if start is None else start
        end = min(start + 1, len(self.text)) if end is None else end
        raise LayoutSyntaxError(code, message, start, end, hint)

    def whole(self, rule: Callable[[Self], _T]) -> _T:
        """The value that `rule` reads, if it reads the whole text."""
        self.space()
        result = rule(self)
        self.space()
        if self.pos != len(self.text):
            self.fail(f"unexpected text after the end: {self.text[self.pos : self.pos + 20]!r}", end=len(self.text))
        return result

    # Characters

    def space(self) -> None:
        """Skips blanks."""
        match = _SPACE.match(self.text, self.pos)
        assert match is not None
        self.pos = match.end()

    def peek(self) -> str:
        """The next character after blanks; empty at the end."""
        self.space()
        return self.text[self.pos : self.pos + 1]

    def accept(self, token: str) -> bool:
        """Skips `token` if it comes next."""
        self.space()
        if self.text.startswith(token, self.pos):
            self.pos += len(token)
            return True
        return False

    def expect(self, token: str, where: str) -> None:
        """Skips `token`, or fails."""
        if not self.accept(token):
            actual = repr(self.peek()) if self.peek() else "the end"
            self.fail(f"expected {token!r} {where}, found {actual}")

    # Integers

    def integer(self, expected: str = "an integer") -> int:
        """A decimal integer of at most 64 bits."""
        self.space()
        match = _INTEGER.match(self.text, self.pos)
        if match is None:
            actual = repr(self.peek()) if self.peek() else "the end"
            self.fail(f"expected {expected}, found {actual}")
        value = int(match[0]) if len(match[0]) <= 20 else _LIMIT
        if not -_LIMIT <= value < _LIMIT:
            self.fail("the integer does not fit in 64 bits", match.start(), match.end(), Code.TEXT_INTEGER_RANGE)
        self.pos = match.end()
        return value

    def dynamic(self) -> Unknown:
        """The rest of a dynamic integer after its question mark."""
        if self.text[self.pos : self.pos + 1] != "{":
            return Unknown()
        match = _DYNAMIC_NOTES.match(self.text, self.pos)
        if match is None or not (match[1] or match[2]):
            self.fail("expected a width or a divisor", hint="write ?, ?{i64}, ?{div=8} or ?{i64 div=8}")
        width = int(match[1] or 32)
        div = int(match[2]) if match[2] and len(match[2]) <= 19 else 1 if not match[2] else _LIMIT
        if not 1 <= div < _LIMIT:
            self.fail("the divisor must be positive and fit in 64 bits", *match.span(2), Code.TEXT_INTEGER_RANGE)
        self.pos = match.end()
        return Unknown(width, div)

    def leaf(self, kind: NotationKind) -> AnyTuple:
        """One leaf of a tuple of this kind."""
        self.count += 1
        if self.count > MAX_LEAVES:
            self.fail(f"more than {MAX_LEAVES} integers", code=Code.TEXT_TOO_LARGE)
        self.space()
        start = self.pos
        if self.accept("_"):
            if self.text[self.pos : self.pos + 1].isdigit() or self.text[self.pos : self.pos + 1] == "-":
                value = self.integer()
            elif kind == "coord":
                return None
            else:
                self.fail("an underscore stands in coordinates and tilers only", start)
        elif kind == "coord" and self.accept("X"):
            return None
        else:
            value = self.dynamic() if self.accept("?") else self.integer("an integer, '?' or '('")
        if kind == "shape" and type(value) is int and value < 1:
            self.fail(f"extent {value} is not positive", start, self.pos, Code.EXTENT_NOT_POSITIVE)
        if kind in ("stride", "tuple") and self.text[self.pos : self.pos + 1] == "@":
            return self.basis(value)
        return value

    def basis(self, value: AnyTuple) -> ScaledBasis:
        """The rest of a scaled basis after its value."""
        path: list[int] = []
        start = self.pos
        while self.accept("@"):
            mode = self.integer("a mode index")
            if not 0 <= mode < MAX_DEPTH:
                self.fail(f"a mode index must be at least 0 and less than {MAX_DEPTH}", start, self.pos)
            if len(path) == MAX_DEPTH:
                self.fail(f"a basis names modes at most {MAX_DEPTH} deep", start, self.pos, Code.TEXT_TOO_LARGE)
            path.append(mode)
        return ScaledBasis(value, tuple(reversed(path)))

    # Tuples

    def nested(self, kind: NotationKind) -> AnyTuple:
        """A leaf, or a tuple in parentheses."""
        if self.peek() != "(":
            return self.leaf(kind)
        self.enter()
        items: list[AnyTuple] = []
        if not self.accept(")"):
            items.append(self.nested(kind))
            while self.accept(","):
                items.append(self.nested(kind))
            self.expect(")", "or ',' in a tuple")
        self.depth -= 1
        return tuple(items)

    def enter(self) -> None:
        """Skips an opening bracket and counts the depth."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            self.fail(f"nested deeper than {MAX_DEPTH}", code=Code.TEXT_TOO_LARGE)
        self.pos += 1

    def int_tuple(self) -> AnyTuple:
        """A tuple of integers or bases."""
        return self.nested("tuple")

    def coord(self) -> Any:
        """A tuple of integers or underscores."""
        return self.nested("coord")

    # Layouts

    def plain_layout(self) -> Layout:
        """`shape:stride`."""
        self.space()
        start = self.pos
        shape = self.nested("shape")
        self.expect(":", "between shape and stride")
        self.space()
        stride_start = self.pos
        stride = self.nested("stride")
        if not congruent(shape, stride):
            self.fail(
                f"the stride {self.text[stride_start : self.pos]} is nested differently from the shape",
                stride_start,
                self.pos,
                Code.TEXT_NOT_CONGRUENT,
            )
        if not size_fits(shape):
            self.fail("the size of the layout does not fit in 64 bits", start, self.pos, Code.TEXT_INTEGER_RANGE)
        return Layout(shape, stride)

    def layout(self) -> LayoutLike:
        """A layout, or `outer o offset o inner`."""
        outer = self.swizzle() if self.peek() == "S" else self.plain_layout()
        if type(outer) is Layout and self.peek() != "o":
            return outer
        self.expect("o", "between the parts of a composed layout")
        offset = self.nested("tuple")
        self.expect("o", "between the parts of a composed layout")
        return ComposedLayout(outer, offset, self.plain_layout())

    def coord_tensor(self) -> tuple[AnyTuple, Layout]:
        """`start o layout`, or only a layout with basis strides, which starts at zeros."""
        begin, count = self.pos, self.count
        start = self.nested("coord")
        if self.accept("o"):
            return start, self.plain_layout()
        self.pos, self.count = begin, count
        layout = self.plain_layout()
        return coprofile(layout.stride) or 0, layout

    def swizzle(self) -> Swizzle:
        """`S<bits,base,shift>`."""
        self.space()
        start = self.pos
        if not (self.accept("Sw") or self.accept("S")):
            self.fail("expected a swizzle such as S<3,4,3>")
        self.expect("<", "after the name of a swizzle")
        bits = self.integer()
        self.expect(",", "in a swizzle")
        base = self.integer()
        self.expect(",", "in a swizzle")
        shift = self.integer()
        self.expect(">", "at the end of a swizzle")
        try:
            return Swizzle(bits, base, shift)
        except LayoutError as error:
            raise LayoutSyntaxError(Code.SWIZZLE_INVALID, error.message, start, self.pos, error.hint) from None

    # Tilers

    def tiler(self) -> Any:
        """A bracketed tiler, a layout, or a tuple of extents and underscores."""
        if self.peek() in ("[", "<"):
            return self.tiler_list()
        start, count = self.pos, self.count
        extents = self.nested("coord")
        if self.peek() != ":":
            self.check_extents(extents, start)
            return extents
        self.pos, self.count = start, count
        return self.plain_layout()

    def check_extents(self, extents: AnyTuple, start: int) -> None:
        """Fails if an extent of a tiler is not positive."""
        if any(type(e) is int and e < 1 for e in leaves(extents)):
            self.fail("the extents of a tiler must be positive", start, self.pos, Code.EXTENT_NOT_POSITIVE)

    def tiler_list(self) -> AnyTuple:
        """`[a;b]` or `<a;b>`."""
        closing = "]" if self.peek() == "[" else ">"
        self.enter()
        items = [self.tiler()]
        while self.accept(";"):
            items.append(self.tiler())
        self.expect(closing, "or ';' in a tiler")
        self.depth -= 1
        return tuple(items)


def one_of(parser: Parser) -> Any:
    """A swizzle, a composed layout, a layout, a tiler or a tuple, as the text demands."""
    if parser.peek() == "S":
        return parser.layout() if " o " in parser.text else parser.swizzle()
    if parser.peek() in ("[", "<"):
        return parser.tiler()
    if ":" in parser.text:
        return parser.layout()
    return parser.coord() if "_" in parser.text or "X" in parser.text else parser.int_tuple()
