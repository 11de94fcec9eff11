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

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ...base.errors import Code, TilefoldError
from .expression_tree import (
    COMPARISONS,
    And,
    Binary,
    Call,
    Compare,
    Conditional,
    Expression,
    Name,
    Negate,
    Not,
    Number,
    Or,
    Quoted,
    Slice,
    Subscript,
    Tuple,
)

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


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    start: int
    end: int


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

_COMPARISONS = ("~=", *COMPARISONS)
_SUMS = ("+", "-")
_PRODUCTS = ("*", "/", "//", "%", "@")
_MAX_DIGITS = 40


def parse_expression(text: str, *, choices: bool = False) -> Expression:
    """Read a whole expression; with `choices`, one of a parameter.

    Raises ExpressionError, with the offsets of the fault, for text that is too long, too deep or not in the grammar.
    """
    if len(text) > MAX_LENGTH:
        raise ExpressionError(
            Code.EXPRESSION_TOO_LARGE,
            f"an expression of {len(text)} characters",
            0,
            1,
            hint=f"write at most {MAX_LENGTH}",
        )
    parser = _Parser(_tokenize(text, _CHOICE_TOKENS if choices else _TOKENS), choices)
    node = parser.whole()
    parser.expect_end()
    return node


def _tokenize(text: str, pattern: re.Pattern[str]) -> list[_Token]:
    tokens: list[_Token] = []
    at = 0
    while at < len(text):
        match = pattern.match(text, at)
        if match is None or match.lastgroup is None:
            raise ExpressionError(
                Code.EXPRESSION_SYNTAX, f"the character {text[at]!r} has no meaning in an expression", at, at + 1
            )
        if len(tokens) == MAX_TOKENS:
            raise ExpressionError(
                Code.EXPRESSION_TOO_LARGE,
                "the expression has too many parts",
                at,
                at + 1,
                hint=f"use at most {MAX_TOKENS} names, numbers and operators",
            )
        if match.lastgroup != "space":
            tokens.append(_Token(match.lastgroup, match.group(), at, match.end()))
        at = match.end()
    tokens.append(_Token("end", "", len(text), len(text)))
    return tokens


class _Parser:
    """Recursive descent over the tokens, one method a rule of the grammar."""

    def __init__(self, tokens: Sequence[_Token], choices: bool) -> None:
        self._tokens = tokens
        self._choices = choices
        self._words = CHOICE_WORDS if choices else frozenset(("and",))
        self._at = 0
        self._depth = 0

    @property
    def _token(self) -> _Token:
        return self._tokens[self._at]

    def _fail(self, wanted: str) -> ExpressionError:
        token = self._token
        found = f"'{token.text}'" if token.text else "the end of the expression"
        return ExpressionError(
            Code.EXPRESSION_SYNTAX, f"expected {wanted}, found {found}", token.start, max(token.end, token.start + 1)
        )

    def _take(self, *texts: str) -> _Token | None:
        token = self._token
        if token.kind in ("op", "name") and token.text in texts:
            self._at += 1
            return token
        return None

    def _expect(self, text: str) -> _Token:
        if (token := self._take(text)) is None:
            raise self._fail(f"'{text}'")
        return token

    def _enter(self) -> None:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            token = self._token
            raise ExpressionError(
                Code.EXPRESSION_TOO_LARGE,
                "the expression nests too deeply",
                token.start,
                max(token.end, token.start + 1),
                hint=f"nest at most {MAX_DEPTH} levels",
            )

    def expect_end(self) -> None:
        """Fail unless the whole text has been read."""
        if self._token.kind != "end":
            raise self._fail("an operator or the end of the expression")

    def whole(self) -> Expression:
        """Read the widest expression of the grammar."""
        return self._choice() if self._choices else self._conjunction()

    def _choice(self) -> Expression:
        value = self._disjunction()
        if self._take("if") is None:
            return value
        self._enter()
        condition = self._disjunction()
        self._expect("else")
        otherwise = self._choice()
        self._depth -= 1
        return Conditional(value.start, otherwise.end, value, condition, otherwise)

    def _disjunction(self) -> Expression:
        parts = [self._conjunction()]
        while self._take("or"):
            parts.append(self._conjunction())
        return parts[0] if len(parts) == 1 else Or(parts[0].start, parts[-1].end, tuple(parts))

    def _negation(self) -> Expression:
        if not self._choices or (word := self._take("not")) is None:
            return self._comparison()
        self._enter()
        operand = self._negation()
        self._depth -= 1
        return Not(word.start, operand.end, operand)

    def _conjunction(self) -> Expression:
        parts = [self._negation()]
        while self._take("and"):
            parts.append(self._negation())
        return parts[0] if len(parts) == 1 else And(parts[0].start, parts[-1].end, tuple(parts))

    def _comparison(self) -> Expression:
        left = self._sum()
        if (op := self._take(*_COMPARISONS)) is None:
            return left
        right = self._sum()
        if self._token.text in _COMPARISONS:
            raise self._fail("'and' between two comparisons")
        return Compare(left.start, right.end, op.text, left, right)

    def _sum(self) -> Expression:
        self._enter()
        left = self._product()
        while op := self._take(*_SUMS):
            right = self._product()
            left = Binary(left.start, right.end, op.text, left, right)
        self._depth -= 1
        return left

    def _product(self) -> Expression:
        left = self._unary()
        while op := self._take(*_PRODUCTS):
            right = self._unary()
            left = Binary(left.start, right.end, op.text, left, right)
        return left

    def _unary(self) -> Expression:
        if (minus := self._take("-")) is None:
            return self._power()
        self._enter()
        operand = self._unary()
        self._depth -= 1
        return Negate(minus.start, operand.end, operand)

    def _power(self) -> Expression:
        base = self._postfix()
        if self._take("**") is None:
            return base
        self._enter()
        exponent = self._unary()
        self._depth -= 1
        return Binary(base.start, exponent.end, "**", base, exponent)

    def _postfix(self) -> Expression:
        node = self._atom()
        while True:
            if self._take("["):
                indices = [self._index()]
                while self._take(","):
                    indices.append(self._index())
                node = Subscript(node.start, self._expect("]").end, node, tuple(indices))
            elif self._take("."):
                node = Call(node.start, self._expect("T").end, "transpose", (node,))
            else:
                return node

    def _index(self) -> "Expression | Slice":
        start = self._token.start
        lower = None if self._token.text == ":" else self._sum()
        if self._take(":") is None:
            assert lower is not None
            return lower
        upper = None if self._token.text in (":", ",", "]") else self._sum()
        step = None
        if self._take(":"):
            step = None if self._token.text in (",", "]") else self._sum()
        return Slice(start, self._tokens[self._at - 1].end, lower, upper, step)

    def _atom(self) -> Expression:
        token = self._token
        if token.kind == "number":
            self._at += 1
            return Number(token.start, token.end, _number(token))
        if token.kind == "text":
            self._at += 1
            return Quoted(token.start, token.end, token.text[1:-1])
        if token.kind == "name" and token.text not in self._words:
            self._at += 1
            if self._take("(") is None:
                return Name(token.start, token.end, token.text)
            return self._call(token)
        if self._take("("):
            items = [self.whole()]
            is_tuple = False
            while self._take(","):
                is_tuple = True
                if self._token.text == ")":
                    break
                items.append(self.whole())
            end = self._expect(")").end
            # a parenthesised expression is itself, with its parentheses: its text is shown in reports
            return Tuple(token.start, end, tuple(items)) if is_tuple else replace(items[0], start=token.start, end=end)
        raise self._fail("a number, a name or '('")

    def _call(self, name: _Token) -> Expression:
        arguments: list[Expression] = []
        keywords: list[tuple[str, Expression]] = []
        while self._token.text != ")":
            if self._token.kind == "name" and self._tokens[self._at + 1].text == "=":
                keyword = self._token.text
                if any(keyword == given for given, _ in keywords):
                    raise self._fail(f"'{keyword}' once")
                self._at += 2
                keywords.append((keyword, self.whole()))
            elif keywords:
                raise self._fail("'keyword=value', since positional arguments come first")
            else:
                arguments.append(self.whole())
            if self._take(",") is None:
                break
        return Call(name.start, self._expect(")").end, name.text, tuple(arguments), tuple(keywords))


def _number(token: _Token) -> int | float:
    text = token.text
    if len(text) > _MAX_DIGITS:
        raise ExpressionError(Code.EXPRESSION_TOO_LARGE, f"a number of {len(text)} characters", token.start, token.end)
    if text[:2] in ("0x", "0X"):
        return int(text, 16)
    return int(text) if text.isdecimal() else float(text)
