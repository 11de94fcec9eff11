# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The small expression language of `.cute` files: its grammar and its parser.

One grammar serves module parameters (`${TILE_M / 4}`), the values that fill a kernel's arguments (`normal(seed=0)`) and
the checks of a run (`B ~= A @ A.T`). Parsing never evaluates anything; each reader walks the tree with the operations
that it allows.

    conjunction := comparison ("and" comparison)*
    comparison  := sum (("==" | "~=" | "!=" | "<" | "<=" | ">" | ">=") sum)?
    sum         := product (("+" | "-") product)*
    product     := unary (("*" | "/" | "//" | "%" | "@") unary)*
    unary       := "-" unary | power
    power       := postfix ("**" unary)?
    postfix     := atom ("[" index ("," index)* "]" | ".T")*
    index       := sum | sum? ":" sum? (":" sum?)?
    atom        := number | name | name "(" arguments ")" | "(" conjunction ("," conjunction)* ","? ")"
    arguments   := positional and then `keyword=value` arguments, separated by commas

`a == b` asks for equal values, `a ~= b` for values within a tolerance. A parenthesised list is a tuple (a shape).

Module parameters also choose between values; in their expressions `or`, `not`, `if`, `else` are words of the grammar:

    choice      := disjunction ("if" disjunction "else" choice)?
    disjunction := conjunction ("or" conjunction)*
    conjunction := negation ("and" negation)*
    negation    := "not" negation | comparison
    atom        := ... | "'" text "'"
"""

import ast
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Any, NamedTuple, NoReturn, TypeAlias

from ...base.errors import Code, TilefoldError

Expression: TypeAlias = ast.expr
"""A node of Python's syntax tree, one of those of the grammar; its columns are character offsets in the text.

`a ~= b` is a Compare by `Near`, `A.T` an Attribute; the slice of a Subscript is a Tuple of its indices.
"""


class Near(ast.cmpop):
    """`~=`, within a tolerance, which Python does not have."""


_UNTYPED: Any = operator
OPERATORS: Mapping[type[ast.AST], tuple[str, Callable[[Any, Any], Any]]] = MappingProxyType({
    ast.Add: ("+", _UNTYPED.add), ast.Sub: ("-", _UNTYPED.sub), ast.Mult: ("*", _UNTYPED.mul),
    ast.Div: ("/", _UNTYPED.truediv), ast.FloorDiv: ("//", _UNTYPED.floordiv), ast.Mod: ("%", _UNTYPED.mod),
    ast.MatMult: ("@", _UNTYPED.matmul), ast.Pow: ("**", _UNTYPED.pow),
    ast.Eq: ("==", _UNTYPED.eq), ast.NotEq: ("!=", _UNTYPED.ne), ast.Lt: ("<", _UNTYPED.lt),
    ast.LtE: ("<=", _UNTYPED.le), ast.Gt: (">", _UNTYPED.gt), ast.GtE: (">=", _UNTYPED.ge),
})  # fmt: skip
"""The operators, as written, and their functions on numbers and, element by element, on arrays."""

MAX_LENGTH = 4096
"""Longest expression read, in characters."""

MAX_DEPTH = 32
"""Deepest nesting of parentheses, brackets, calls and unary operators."""

MAX_TOKENS = 256
"""Most tokens in an expression; it bounds the depth of the tree that a chain of operators gives."""


class ExpressionError(TilefoldError):
    """An expression that cannot be read; `start` and `end` are character offsets of the fault in its text."""

    def __init__(self, code: Code, message: str, start: int, end: int, *, hint: str = "") -> None:
        super().__init__(code, message, hint)
        self.start = start
        self.end = end

    @classmethod
    def at(cls, node: Expression, code: Code, message: str, hint: str = "") -> "ExpressionError":
        """The error of a part of an expression."""
        return cls(code, message, node.col_offset, node.end_col_offset or 0, hint=hint)


class _Token(NamedTuple):
    """A token with `depth` brackets around it; `opening` is the number of the last open one before it, or -1."""

    kind: str
    text: str
    start: int
    end: int
    depth: int
    opening: int


_TOKENS = re.compile(
    r"(?P<space>[ \t]+)"
    r"|(?P<number>0[xX][0-9a-fA-F]+|(?:\d+\.\d*|\.\d+|\d+)(?:[eE][+-]?\d+)?)"
    r"|(?P<name>[A-Za-z_][A-Za-z0-9_]*)"
    r"|(?P<op>\*\*|//|==|~=|!=|<=|>=|[-+*/%@()\[\],:=.<>])",
    re.ASCII,
)
_CHOICE_TOKENS = re.compile(_TOKENS.pattern + r"|(?P<text>'[^'\"\\\x00-\x1f\x7f]*')", re.ASCII)
CHOICE_WORDS = frozenset(("and", "or", "not", "if", "else"))
"""The words of a parameter's expression, which no parameter can have as its name."""

_CLOSING: Mapping[str, str] = MappingProxyType({"(": ")", "[": "]"})
_IN_PYTHON: Mapping[str, str] = MappingProxyType({"~=": "==", "=": ":="})
"""Operators in the text for Python. There, `=` among the arguments of a call is an expression."""
_COMPARISONS = ("==", "~=", "!=", "<", "<=", ">", ">=")
_MAX_DIGITS = 40


@lru_cache(maxsize=1024)
def parse_expression(text: str, *, choices: bool = False) -> Expression:
    """Read a whole expression; with `choices`, one of a parameter. The tree is kept, since files repeat expressions;
    readers do not change it.

    Raises ExpressionError, with the offsets of the fault, for text that is too long, too deep or not in the grammar.
    """
    if len(text) > MAX_LENGTH:
        message = f"an expression of {len(text)} characters"
        raise ExpressionError(Code.EXPRESSION_TOO_LARGE, message, 0, 1, hint=f"write at most {MAX_LENGTH}")
    return _Reader(text, choices).whole()


class _Reader:
    """Reads an expression by Python's parser, which sees a text of operators and names of the tokens' numbers, `_7`.

    No other word, literal or name of the text reaches it. A token that Python allows and the grammar does not is `?`.
    """

    def __init__(self, text: str, choices: bool) -> None:
        self._words = CHOICE_WORDS if choices else frozenset(("and",))
        self._partner: dict[int, int] = {}
        self._tokens = self._tokenized(text, _CHOICE_TOKENS if choices else _TOKENS)
        self._python = [self._in_python(number, token) for number, token in enumerate(self._tokens[:-1])]
        self._first: dict[int, int] = {}
        self._last: dict[int, int] = {}
        at = 0
        for number, word in enumerate(self._python):
            self._first[at], self._last[at + len(word)] = number, number
            at += len(word) + 1

    def _tokenized(self, text: str, pattern: re.Pattern[str]) -> list[_Token]:
        tokens: list[_Token] = []
        brackets: list[int] = []
        at = 0
        while at < len(text):
            match = pattern.match(text, at)
            if match is None or match.lastgroup is None:
                message = f"the character {text[at]!r} has no meaning in an expression"
                raise ExpressionError(Code.EXPRESSION_SYNTAX, message, at, at + 1)
            start, at = at, match.end()
            if len(tokens) == MAX_TOKENS:
                hint = f"use at most {MAX_TOKENS} names, numbers and operators"
                message = "the expression has too many parts"
                raise ExpressionError(Code.EXPRESSION_TOO_LARGE, message, start, start + 1, hint=hint)
            if match.lastgroup == "space":
                continue
            word = match.group()
            opening = brackets[-1] if brackets else -1
            if brackets and word == _CLOSING[tokens[opening].text]:
                self._partner[brackets.pop()] = len(tokens)
            tokens.append(_Token(match.lastgroup, word, start, at, len(brackets), opening))
            self._check_depth(tokens[-1], 0)
            if word in _CLOSING:
                brackets.append(len(tokens) - 1)
        tokens.append(_Token("end", "", len(text), len(text), len(brackets), brackets[-1] if brackets else -1))
        return tokens

    def _in_python(self, number: int, token: _Token) -> str:
        if not self._is_allowed(number, token):
            return "?"
        if token.kind == "op":
            return _IN_PYTHON.get(token.text, token.text)
        return token.text if token.text in self._words else f"_{number}"

    def _is_allowed(self, number: int, token: _Token) -> bool:
        """Whether the grammar has a token here, where Python has it."""
        before, operand = self._tokens[number - 1], self._ends_operand(number - 1)
        match token.text:
            case "+" | "*" | "**" | "[":
                return operand
            case "(":
                return not operand or (before.kind == "name" and self._tokens[number - 2].text != ".")
            case ")":
                return before.text != "(" or self._ends_operand(number - 2)
            case "]":
                return before.text != ","
            case ",":
                return token.opening >= 0
            case "=":
                is_argument = self._is_in(token, "(") and self._ends_operand(token.opening - 1)
                return is_argument and before.kind == "name" and self._tokens[number - 2].text in ("(", ",")
            case text if before.text == ".":
                return text == "T"
            case text:
                return not self._is_in(token, "[") or (text not in self._words and text not in _COMPARISONS)

    def _is_in(self, token: _Token, bracket: str) -> bool:
        return token.opening >= 0 and self._tokens[token.opening].text == bracket

    def whole(self) -> Expression:
        """The expression."""
        try:
            tree = ast.parse(" ".join(self._python), mode="eval")
        except SyntaxError:
            self._fail(self._misplaced())
        return self._node(tree.body, 0)

    def _misplaced(self) -> int:
        """The number of the first token after which the text is not the beginning of an expression of Python's."""
        good, bad = 0, len(self._tokens)
        while bad - good > 1:
            middle = (good + bad) // 2
            good, bad = (middle, bad) if self._can_begin(middle) else (good, middle)
        return good

    def _can_begin(self, count: int) -> bool:
        """Whether an expression may begin with the first tokens: later tokens close its open brackets."""
        ends = [self._closed(count, -1)]
        opening = self._tokens[count].opening
        while opening >= 0:
            ends.insert(-1, f"{self._closed(count, opening)} {_CLOSING[self._tokens[opening].text]}")
            opening = self._tokens[opening].opening
        for operand in ("", "x"):
            try:
                ast.parse(" ".join([*self._python[:count], operand, *ends]), mode="eval")
            except SyntaxError:
                continue
            return True
        return False

    def _closed(self, count: int, opening: int) -> str:
        """The missing part of an `if` within a bracket."""
        return "else x" if self._lacks_else(count, opening) else ""

    def _lacks_else(self, count: int, opening: int) -> bool:
        if "if" not in self._words:
            return False
        words = [token.text for token in self._tokens[:count] if token.opening == opening]
        return words.count("if") > words.count("else")

    def _fail(self, number: int, wanted: str = "") -> NoReturn:
        """Raises the error of a token that does not fit; `wanted` would."""
        token = self._tokens[number]
        actual = f"'{token.text}'" if token.text else "the end of the expression"
        raise ExpressionError(
            Code.EXPRESSION_SYNTAX,
            f"expected {wanted or self._wanted(number)}, found {actual}",
            token.start,
            max(token.end, token.start + 1),
        )

    def _wanted(self, number: int) -> str:
        opening = self._tokens[number].opening
        if number and self._tokens[number - 1].text == ".":
            return "'T'"
        if not self._ends_operand(number - 1):
            return "a number, a name or '('"
        if self._lacks_else(number, opening):
            return "'else'"
        if opening < 0:
            return "an operator or the end of the expression"
        return f"'{_CLOSING[self._tokens[opening].text]}'"

    def _ends_operand(self, number: int) -> bool:
        if number < 0:
            return False
        token = self._tokens[number]
        return token.text in _CLOSING.values() if token.kind == "op" else token.text not in self._words

    def _after(self, tree: ast.expr) -> int:
        """The number of the token after an operand and the parentheses around it."""
        number = self._last[tree.end_col_offset or 0] + 1
        while self._tokens[number].text == ")":
            number += 1
        return number

    def _is_grouped(self, tree: ast.expr) -> bool:
        return self._partner.get(self._first[tree.col_offset]) == self._last[tree.end_col_offset or 0]

    def _check_depth(self, token: _Token, operators: int) -> None:
        if token.depth + operators + 1 > MAX_DEPTH:
            raise ExpressionError(
                Code.EXPRESSION_TOO_LARGE,
                "the expression nests too deeply",
                token.start,
                token.end,
                hint=f"nest at most {MAX_DEPTH} levels",
            )

    def _node(self, tree: ast.expr, operators: int) -> Expression:
        """A part of the expression below a number of nested operators; its place has the parentheses around it."""
        first, last = self._first[tree.col_offset], self._last[tree.end_col_offset or 0]
        self._check_depth(self._tokens[first], operators)
        node = self._read(tree, first, last, operators)
        while (
            first > 0
            and self._tokens[first - 1].text == "("
            and self._partner.get(first - 1) == last + 1
            and not self._ends_operand(first - 2)
        ):
            first, last = first - 1, last + 1
        node.col_offset, node.end_col_offset = self._tokens[first].start, self._tokens[last].end
        return node

    def _nodes(self, trees: Sequence[ast.expr], operators: int) -> list[Expression]:
        return [self._node(tree, operators) for tree in trees]

    def _read(self, tree: ast.expr, first: int, last: int, operators: int) -> Expression:
        """Python's node with the words of the text in it, if the grammar has it."""
        match tree:
            case ast.Name():
                return _atom(self._tokens[first])
            case ast.UnaryOp(op=ast.USub() | ast.Not()):
                tree.operand = self._node(tree.operand, operators + 1)
            case ast.BinOp():
                tree.left = self._node(tree.left, operators)
                tree.right = self._node(tree.right, operators + isinstance(tree.op, ast.Pow))
            case ast.Compare(ops=[_]):
                if self._tokens[self._after(tree.left)].text == "~=":
                    tree.ops = [Near()]
                tree.left, *tree.comparators = self._nodes([tree.left, *tree.comparators], operators)
            case ast.Compare():
                self._fail(self._after(tree.comparators[0]), "'and' between two comparisons")
            case ast.BoolOp():
                tree.values = self._nodes(tree.values, operators)
            case ast.IfExp():
                tree.body = self._node(tree.body, operators)
                tree.test, tree.orelse = self._nodes([tree.test, tree.orelse], operators + 1)
            case ast.Attribute():
                tree.attr, tree.value = "T", self._node(tree.value, operators)
            case ast.Tuple():
                tree.elts = self._nodes(tree.elts, operators)
            case ast.Subscript():
                inside = tree.slice
                indices = [inside] if self._is_grouped(inside) or not isinstance(inside, ast.Tuple) else inside.elts
                tree.slice = ast.Tuple(self._nodes(indices, operators), ast.Load())
                tree.value = self._node(tree.value, operators)
            case ast.Slice():
                parts = (tree.lower, tree.upper, tree.step)
                tree.lower, tree.upper, tree.step = (part and self._node(part, operators) for part in parts)
            case ast.Call():
                self._read_call(tree, operators)
            case _:
                self._fail(first)
        return tree

    def _read_call(self, tree: ast.Call, operators: int) -> None:
        arguments, tree.args = tree.args, []
        for argument in arguments:
            number = self._first[argument.col_offset]
            keyword = self._tokens[number]
            if isinstance(argument, ast.NamedExpr):
                if any(keyword.text == given.arg for given in tree.keywords):
                    self._fail(number, f"'{keyword.text}' once")
                tree.keywords.append(ast.keyword(keyword.text, self._node(argument.value, operators)))
            elif tree.keywords:
                self._fail(number, "'keyword=value', since positional arguments come first")
            else:
                tree.args.append(self._node(argument, operators))
        tree.func = self._node(tree.func, operators)


def _atom(token: _Token) -> Expression:
    if token.kind == "name":
        return ast.Name(token.text, ast.Load())
    return ast.Constant(token.text[1:-1] if token.kind == "text" else _number(token))


def _number(token: _Token) -> int | float:
    text = token.text
    if len(text) > _MAX_DIGITS:
        raise ExpressionError(Code.EXPRESSION_TOO_LARGE, f"a number of {len(text)} characters", token.start, token.end)
    if text[:2] in ("0x", "0X"):
        return int(text, 16)
    return int(text) if text.isdecimal() else float(text)
