# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The expressions of the layout algebra: their syntax tree, and the parser on top of that for layout text.

    statements := statement (";" statement)* ";"?
    statement  := (name "=")? chain
    chain      := layout ("o" layout)*
    layout     := (operand (":" operand)?) postfix*
    operand    := atom postfix*
    postfix    := "(" arguments ")" | "[" integer "]"
    atom       := integer | "?" notes | "_" | "X" | name ("<" integers ">")? | string | swizzle
                | "(" (chain ("," chain)* ","?)? ")" | "[" chain (";" chain)* "]" | "<" chain (";" chain)* ">"

So every text of a layout, tiler, swizzle, shape or coordinate is an expression that means itself, and within one a
name or a call may stand for any part. Reading never evaluates anything. The text is not trusted: its length,
depth and number of integers are bounded.
"""

import re
from dataclasses import dataclass
from typing import Any, TypeAlias

from ...base.errors import Code
from .parser import MAX_DEPTH, Parser

MAX_EXPRESSION = 1 << 12
"""The longest text of statements, in characters."""

RESERVED = frozenset({"o", "X"})
"""Names with a meaning of their own: the composition sign, and CuTe's dropped mode."""

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_SWIZZLE = re.compile(r"Sw? *<")
_UNDERSCORE = re.compile(r"_(?![0-9A-Za-z_-])|X(?![0-9A-Za-z_])")
_CIRCLE = re.compile(r"o(?![A-Za-z0-9_])")
_STRING = re.compile(r"\"([^\"\n]*)\"|'([^'\n]*)'")


@dataclass(frozen=True, slots=True)
class Node:
    """A piece of an expression; `start` and `end` are its character offsets in the text."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Literal(Node):
    """An integer, a basis, a dynamic integer, an underscore (None), a swizzle or a string."""

    value: Any


@dataclass(frozen=True, slots=True)
class Name(Node):
    """A name: of an operation before arguments, else of a value."""

    name: str


@dataclass(frozen=True, slots=True)
class Tuple(Node):
    """`(a,b)`, `[a;b]` or `<a;b>`; `groups` for `(a)`, which may be no more than parentheses."""

    items: tuple["Expression", ...]
    groups: bool = False


@dataclass(frozen=True, slots=True)
class Pair(Node):
    """`shape:stride`."""

    shape: "Expression"
    stride: "Expression"


@dataclass(frozen=True, slots=True)
class Call(Node):
    """`function(arguments)`, or `function<modes>(arguments)` with CuTe's template arguments."""

    function: "Expression"
    arguments: tuple["Expression", ...]
    modes: tuple[Literal, ...] = ()


@dataclass(frozen=True, slots=True)
class Item(Node):
    """`value[mode]`."""

    value: "Expression"
    mode: Literal


@dataclass(frozen=True, slots=True)
class Chain(Node):
    """`a o b`: a composition; with a tuple of integers in the middle, `outer o offset o inner`."""

    parts: tuple["Expression", ...]


Expression: TypeAlias = Literal | Name | Tuple | Pair | Call | Item | Chain


@dataclass(frozen=True, slots=True)
class Statement(Node):
    """An expression, and the name that its value gets, if any."""

    name: Name | None
    expression: Expression


def parse_statements(text: str) -> tuple[Statement, ...]:
    """The statements of a text. Raises `LayoutSyntaxError` with the characters at fault."""
    parser = _ExpressionParser(text)
    if len(text) > MAX_EXPRESSION:
        message = f"the text is {len(text)} characters long; the limit is {MAX_EXPRESSION}"
        parser.fail(message, 0, len(text), Code.TEXT_TOO_LARGE)
    return parser.whole(_ExpressionParser.statements)


class _ExpressionParser(Parser):
    """Recursive descent, one method a rule of the grammar."""

    def statements(self) -> tuple[Statement, ...]:
        result = [self._statement()]
        while self.accept(";"):
            if not self.peek():
                break
            result.append(self._statement())
        return tuple(result)

    def _statement(self) -> Statement:
        self.space()
        start = self.pos
        name = _NAME.match(self.text, start)
        if name is not None:
            self.pos = name.end()
            if self.accept("="):
                target = Name(start, name.end(), name[0])
                if name[0] in RESERVED:
                    self.fail(f"{name[0]!r} cannot be the name of a value", start, name.end())
                expression = self._chain()
                return Statement(start, expression.end, target, expression)
            self.pos = start
        expression = self._chain()
        return Statement(start, expression.end, None, expression)

    def _chain(self) -> Expression:
        parts = [self._layout()]
        while True:
            self.space()
            if _CIRCLE.match(self.text, self.pos) is None:
                break
            self.pos += 1
            parts.append(self._layout())
        return parts[0] if len(parts) == 1 else Chain(parts[0].start, parts[-1].end, tuple(parts))

    def _layout(self) -> Expression:
        shape = self._operand()
        if not self.accept(":"):
            return shape
        stride = self._atom()
        if isinstance(stride, Name):  # `A:f(B)(3)` calls f for the stride, and then the layout
            stride = self._postfix(stride)
        return self._postfixes(Pair(shape.start, stride.end, shape, stride))

    def _operand(self) -> Expression:
        return self._postfixes(self._atom())

    def _postfixes(self, node: Expression) -> Expression:
        for _ in range(MAX_DEPTH):
            following = self._postfix(node)
            if following is node:
                return node
            node = following
        self.fail(f"more than {MAX_DEPTH} calls or modes of one value", code=Code.TEXT_TOO_LARGE)

    def _postfix(self, node: Expression) -> Expression:
        """The call or the mode of `node` that comes next; `node` itself if none does."""
        following = self.peek()
        if following == "(":
            return self._call(node, ())
        if following == "<" and isinstance(node, Name):
            return self._call(node, self._template_arguments())
        if following == "[":
            self.pos += 1
            mode = self._mode()
            self.expect("]", "after a mode")
            return Item(node.start, self.pos, node, mode)
        return node

    def _call(self, function: Expression, modes: tuple[Literal, ...]) -> Call:
        if self.peek() != "(":
            self.fail("expected '(' before the arguments")
        arguments, _ = self._items(")", ",")
        return Call(function.start, self.pos, function, arguments, modes)

    def _template_arguments(self) -> tuple[Literal, ...]:
        self.expect("<", "before modes")
        modes = [self._mode()]
        while self.accept(","):
            modes.append(self._mode())
        self.expect(">", "or ',' after a mode")
        return tuple(modes)

    def _mode(self) -> Literal:
        self.space()
        start = self.pos
        value = self.integer("a mode index")
        return Literal(start, self.pos, value)

    def _items(self, closing: str, separator: str) -> tuple[tuple[Expression, ...], bool]:
        """The expressions between brackets, and whether a separator stands among them."""
        self.enter()
        items: list[Expression] = []
        separated = False
        while not self.accept(closing):
            if items:
                self.expect(separator, f"or {closing!r}")
                separated = True
                if self.accept(closing):
                    break
            items.append(self._chain())
        self.depth -= 1
        return tuple(items), separated

    def _atom(self) -> Expression:
        opening = self.peek()
        start = self.pos
        if opening == "(":
            items, separated = self._items(")", ",")
            return Tuple(start, self.pos, items, groups=len(items) == 1 and not separated)
        if opening == "[" or opening == "<":
            items, _ = self._items("]" if opening == "[" else ">", ";")
            return Tuple(start, self.pos, items)
        if _SWIZZLE.match(self.text, start):
            swizzle = self.swizzle()
            return Literal(start, self.pos, swizzle)
        if _UNDERSCORE.match(self.text, start):
            self.pos += 1
            return Literal(start, self.pos, None)
        if match := _STRING.match(self.text, start):
            self.pos = match.end()
            return Literal(start, self.pos, match[1] if match[1] is not None else match[2])
        if match := _NAME.match(self.text, start):
            if match[0] in RESERVED:
                self.fail(f"expected a layout, found {match[0]!r}", start, match.end())
            self.pos = match.end()
            return Name(start, self.pos, match[0])
        if not (opening.isdigit() or opening in ("-", "_", "?")) or not opening.isascii():
            actual = repr(opening) if opening else "the end"
            self.fail(f"expected a layout, a tuple, a name or an integer, found {actual}")
        value = self.leaf("tuple")
        return Literal(start, self.pos, value)
