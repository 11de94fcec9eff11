# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The values of a file's parameters, and of the expressions over them.

A value is an integer of 64 bits, the name of a type, or text. Comparisons, `and`, `or` and `not` give 1 or 0; a
condition is an integer that is not 0. Only the deciding operands are evaluated: `N != 0 and M % N == 0` is never an
error, and neither is the branch of `A if C else B` that is not taken. A word that names no parameter is a name, as
a branch and in a comparison with a name; elsewhere it is an error, which reveals misspelt parameters.

They decide which lines of a file are left out, by `// if`, `// elif`, `// else` and `// end`.
"""

import ast
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ...base.errors import Code
from ...dialects.run.grammar import OPERATORS, Expression, ExpressionError, Near, parse_expression

MAX_TEXT = 4096
"""Longest text that is a parameter's value, in characters."""

USE = r"\$\{(?P<inner>(?:[^}'\n]|'[^'\n]*')*)\}"
"""The form of `${...}`; a `}` may stand in the quoted text of its expression."""

_PARTS = re.compile(rf"(?P<literal>\$\$\{{)|(?P<use>{USE})|(?P<open>\$\{{)")
_TEXT = re.compile(r'[^"\\\x00-\x1f\x7f]*')
_LIMIT = 2**63


@dataclass(frozen=True, slots=True)
class Text:
    """The value of a parameter that is quoted text."""

    value: str


Value = int | str | Text
"""A parameter's value: an integer, the name of a type, or quoted text."""


def is_text(text: str) -> bool:
    """Whether a parameter can hold the text: without quotes, backslashes and control characters, and not too long."""
    return len(text) <= MAX_TEXT and _TEXT.fullmatch(text) is not None


def evaluate(node: Expression, names: Mapping[str, Value]) -> Value:
    """The value of an expression over parameters. Raises ExpressionError at the part at fault."""
    match node:
        case ast.IfExp():
            return evaluate_word(node.body if _holds(node.test, names) else node.orelse, names)
        case ast.Constant(value=str(text)):
            return substituted(text, node.col_offset + 1, names)
        case ast.Name():
            return _lookup(node, names)
        case _:
            return evaluate_integer(node, names)


def evaluate_word(node: Expression, names: Mapping[str, Value]) -> Value:
    """Evaluates as `evaluate` does, but a word that names no parameter is a name."""
    return node.id if isinstance(node, ast.Name) and node.id not in names else evaluate(node, names)


def evaluate_integer(node: Expression, names: Mapping[str, Value]) -> int:
    """The value of an integer expression over parameters. Raises ExpressionError at the part at fault."""
    result = _integer(node, names)
    if not -_LIMIT <= result < _LIMIT:
        raise _fault("the integer does not fit in 64 bits", node)
    return result


def substituted(text: str, at: int, names: Mapping[str, Value]) -> Text:
    """Text in which `${...}` is replaced; `at` is its offset in the whole that faults are reported in."""
    parts: list[str] = []
    size = copied = 0
    for match in _PARTS.finditer(text):
        start = at + match.start()
        if match["open"]:
            raise ExpressionError(Code.PARAM_SYNTAX, "'${' without a '}' in its text", start, start + 2)
        new = "${" if match["literal"] else insert(match["inner"], start + 2, names, in_text=True)
        parts += text[copied : match.start()], new
        size += match.start() - copied + len(new)
        copied = match.end()
        if size > MAX_TEXT:
            break
    parts.append(text[copied:])
    if size + len(text) - copied > MAX_TEXT:
        raise ExpressionError(
            Code.PARAM_TOO_LARGE, f"the text grows beyond {MAX_TEXT} characters", at, at + max(len(text), 1)
        )
    return Text("".join(parts))


def insert(inner: str, at: int, names: Mapping[str, Value], *, in_text: bool) -> str:
    """The replacement of `${inner}`: a text keeps its quotes unless it is inserted into another one."""
    value = evaluate_at(inner, at, names)
    if not isinstance(value, Text):
        return str(value)
    return value.value if in_text else f'"{value.value}"'


def evaluate_at(text: str, at: int, names: Mapping[str, Value], *, declared: bool = False) -> Value:
    """The value of an expression that is written at offset `at`; where one is `declared`, a word may be a name."""
    try:
        node = parse_expression(text, choices=True)
        return evaluate_word(node, names) if declared else evaluate(node, names)
    except ExpressionError as error:
        error.start += at
        error.end += at
        raise


def holds_at(text: str, at: int, names: Mapping[str, Value]) -> bool:
    """Whether a condition that is written at offset `at` holds."""
    try:
        return _holds(parse_expression(text, choices=True), names)
    except ExpressionError as error:
        error.start += at
        error.end += at
        raise


def _holds(node: Expression, names: Mapping[str, Value]) -> bool:
    value = evaluate(node, names)
    if not isinstance(value, int):
        raise _fault(f"the condition is {_kind(value)}, not an integer", node, "compare it: NAME == 'text'")
    return value != 0


def _integer(node: Expression, names: Mapping[str, Value]) -> int:
    match node:
        case ast.Constant(value=int(value)):
            return value
        case ast.Name() | ast.IfExp() | ast.Constant(value=str()):
            value = evaluate(node, names)
            if isinstance(value, int):
                return value
            subject = f"'{node.id}'" if isinstance(node, ast.Name) else "this"
            raise _fault(f"{subject} is not an integer", node)
        case ast.UnaryOp(op=ast.USub()):
            return -evaluate_integer(node.operand, names)
        case ast.UnaryOp():
            return int(not _holds(node.operand, names))
        case ast.BinOp():
            return _binary(node, evaluate_integer(node.left, names), evaluate_integer(node.right, names))
        case ast.Compare(ops=[op]) if not isinstance(op, Near):
            return int(_compare(node, names))
        case ast.BoolOp():
            together = all if isinstance(node.op, ast.And) else any
            return int(together(_holds(part, names) for part in node.values))
        case ast.Call(func=ast.Name("min" | "max" as name), args=[_, *_], keywords=[]):
            values = [evaluate_integer(argument, names) for argument in node.args]
            return min(values) if name == "min" else max(values)
        case _:
            raise _fault(
                "not an expression of integers",
                node,
                "use integers, parameters, + - * / // % **, min, max, comparisons, and, or, not, and if ... else",
            )


def _binary(node: ast.BinOp, left: int, right: int) -> int:
    text, function = OPERATORS[type(node.op)]
    match text:
        case "+" | "-" | "*":
            return function(left, right)
        case "**" if 0 <= right < 64:
            return left**right
        case "/" | "//" | "%" if right != 0:
            if text == "/" and left % right:
                raise _fault(f"{left} / {right} leaves a remainder", node, "// divides and rounds down")
            return left % right if text == "%" else left // right
        case _:
            raise _fault(f"{left} {text} {right} is not defined", node)


def _compare(node: ast.Compare, names: Mapping[str, Value]) -> bool:
    """Whether two values of one kind compare so; names and texts are equal or not, and have no order."""
    sides = node.left, node.comparators[0]
    left, right = (_operand(one_side, other_side, names) for one_side, other_side in (sides, sides[::-1]))
    if type(left) is not type(right):
        raise _fault(f"{_kind(left)} cannot be compared with {_kind(right)}", node)
    text, function = OPERATORS[type(node.ops[0])]
    if text not in ("==", "!=") and not (isinstance(left, int) and isinstance(right, int)):
        raise _fault(f"'{text}' is not defined for {_kind(left)}", node, "names and strings have only == and !=")
    return function(left, right)


def _operand(node: Expression, other: Expression, names: Mapping[str, Value]) -> Value:
    """One side of a comparison: a word that names no parameter is a name if the other side is one by declaration."""
    if isinstance(node, ast.Name) and node.id not in names and isinstance(other, ast.Name):
        return node.id if isinstance(names.get(other.id), str) else _lookup(node, names)
    return evaluate(node, names)


def _kind(value: Value) -> str:
    return "an integer" if isinstance(value, int) else "a name" if isinstance(value, str) else "a text"


def _fault(message: str, node: Expression, hint: str = "") -> ExpressionError:
    return ExpressionError.at(node, Code.PARAM_VALUE, message, hint)


def _lookup(node: ast.Name, names: Mapping[str, Value]) -> Value:
    if node.id in names:
        return names[node.id]
    known = ", ".join(names) or "none"
    hint = f"declared so far: {known}; declare it above by // param {node.id} = ..."
    raise ExpressionError.at(node, Code.PARAM_UNKNOWN, f"unknown parameter '{node.id}' here", hint)


MAX_NESTING = 32
"""Most `// if` inside each other."""


class BranchError(Exception):
    """A line that does not match the ones before it; the text says how."""


@dataclass(slots=True)
class _Open:
    """An `// if` without its `// end` so far: where it stands, and whether its lines are read."""

    at: int
    reached: bool  # the lines around it are read
    active: bool  # the lines of the current branch are
    decided: bool  # those of some branch were
    last: bool = False  # the current branch is the `// else`


@dataclass(slots=True)
class Branches:
    """The branches around the current line."""

    _open: list[_Open] = field(default_factory=list[_Open])

    @property
    def active(self) -> bool:
        """Whether lines are read here, not left out."""
        return not self._open or self._open[-1].active

    @property
    def unclosed(self) -> int | None:
        """The line of the innermost `// if` without an `// end`."""
        return self._open[-1].at if self._open else None

    @property
    def full(self) -> bool:
        """Whether no further `// if` may stand here."""
        return len(self._open) == MAX_NESTING

    def step(self, word: str, at: int, condition: Callable[[], bool]) -> None:
        """Goes on to the lines after `// word`; the condition is asked for only where it decides.

        Raises BranchError for a word that does not fit here.
        """
        if word == "if":
            reached = self.active
            holds = reached and condition()
            self._open.append(_Open(at, reached, holds, holds))
            return
        if not self._open:
            raise BranchError(f"'// {word}' without an '// if' before it")
        if word == "end":
            self._open.pop()
            return
        branch = self._open[-1]
        if branch.last:
            raise BranchError(f"'// {word}' after the '// else'")
        branch.last = word == "else"
        branch.active = branch.reached and not branch.decided and (word == "else" or condition())
        branch.decided |= branch.active
