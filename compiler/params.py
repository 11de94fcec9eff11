# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Parameters of a `.cute` file.

A comment line of its own declares a parameter with its default, and every `${...}` after it is replaced
before the text is read as MLIR:

    // param TILE_M = 128                 an integer: any expression of integers and earlier parameters
    // param T = f16                      the name of a type
    // param THR = "(8,4):(1,8)"          a quoted text, such as a layout

    %g = tile.local_tile %A, "(${TILE_M},32)", (%m, %k)      // -> "(128,32)"
    %c = tile.tiled_copy #atom thr ${THR} val "${TILE_M / 16}:1"

Integer expressions have `+ - * / // % **`, parentheses, and `min`, `max`; `/` must divide without remainder.
A quoted text is inserted with its quotes, or without them inside another quoted text. `$${` stands for `${`
itself. `-D TILE_M=64` on the command line replaces a default by a value of the same kind. Comments are not
substituted.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from ..dialects.expression import (
    Binary,
    Call,
    Expression,
    ExpressionError,
    Name,
    Negate,
    Number,
    parse_expression,
)
from ..layout.errors import Code, TilefoldError
from .diagnostics import Diagnostic, Place, ProgramError, Severity
from .source import MAX_BYTES, Piece, Source

MAX_PARAMS = 256
"""Most parameters that a file can declare."""

_DECLARATION = re.compile(r"[ \t]*//[ \t]*param\b(?P<body>[^\n]*)")
_BODY = re.compile(r"[ \t]+(?P<name>[A-Za-z_][A-Za-z0-9_]*)[ \t]*=[ \t]*(?P<value>\S.*?)[ \t\r]*")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TEXT = re.compile(r'[^"\\\x00-\x1f\x7f]{0,4096}')
_SCAN = re.compile(r'(?P<comment>//[^\n]*)|(?P<quote>")|(?P<escape>\\.)|(?P<literal>\$\$\{)|(?P<use>\$\{)|(?P<line>\n)')
_LIMIT = 2**63


@dataclass(frozen=True, slots=True)
class Text:
    """The value of a parameter that is quoted text."""

    value: str


Value = int | str | Text
"""A parameter's value: an integer, the name of a type, or quoted text."""


def evaluate_integer(node: Expression, names: Mapping[str, Value]) -> int:
    """The value of an integer expression over parameters. Raises ExpressionError at the part at fault."""
    result = _evaluate(node, names)
    if not -_LIMIT <= result < _LIMIT:
        raise ExpressionError(Code.PARAM_VALUE, "the integer does not fit in 64 bits", node.start, node.end)
    return result


def _evaluate(node: Expression, names: Mapping[str, Value]) -> int:
    match node:
        case Number(value=int(value)):
            return value
        case Name():
            value = _lookup(node, names)
            if isinstance(value, int):
                return value
            raise ExpressionError(Code.PARAM_VALUE, f"'{node.name}' is not an integer", node.start, node.end)
        case Negate():
            return -evaluate_integer(node.operand, names)
        case Binary():
            return _binary(node, evaluate_integer(node.left, names), evaluate_integer(node.right, names))
        case Call(name="min" | "max", arguments=(_, *_), keywords=()):
            values = [evaluate_integer(argument, names) for argument in node.arguments]
            return min(values) if node.name == "min" else max(values)
        case _:
            raise ExpressionError(
                Code.PARAM_VALUE,
                "not an expression of integers",
                node.start,
                node.end,
                hint="use integers, parameters, + - * / // % **, min and max",
            )


def _binary(node: Binary, left: int, right: int) -> int:
    match node.op:
        case "+":
            return left + right
        case "-":
            return left - right
        case "*":
            return left * right
        case "**" if 0 <= right < 64:
            return left**right
        case "/" | "//" | "%" if right != 0:
            if node.op == "/" and left % right:
                raise ExpressionError(
                    Code.PARAM_VALUE,
                    f"{left} / {right} leaves a remainder",
                    node.start,
                    node.end,
                    hint="// divides and rounds down",
                )
            return left % right if node.op == "%" else left // right
        case _:
            raise ExpressionError(Code.PARAM_VALUE, f"{left} {node.op} {right} is not defined", node.start, node.end)


def _lookup(node: Name, names: Mapping[str, Value]) -> Value:
    if node.name in names:
        return names[node.name]
    known = ", ".join(names) or "none"
    raise ExpressionError(
        Code.PARAM_UNKNOWN,
        f"there is no parameter '{node.name}' here",
        node.start,
        node.end,
        hint=f"declared so far: {known}; declare it above by // param {node.name} = ...",
    )


def _read_value(text: str, names: Mapping[str, Value]) -> Value:
    """A declared value: quoted text, the name of a type, or an integer expression."""
    if text.startswith('"'):
        if len(text) < 2 or not text.endswith('"') or not _TEXT.fullmatch(text[1:-1]):
            raise ExpressionError(Code.PARAM_SYNTAX, "quoted text ends at the next quote of its line", 0, len(text))
        return Text(text[1:-1])
    if _NAME.fullmatch(text) and text not in names:
        return text
    return evaluate_integer(parse_expression(text), names)


def _override(name: str, declared: Value, given: str, names: Mapping[str, Value]) -> Value:
    """The value of `-D name=given`, of the kind of the declared one. Raises TilefoldError."""
    match declared:
        case int():
            try:
                return evaluate_integer(parse_expression(given), names)
            except ExpressionError as error:
                raise TilefoldError(
                    Code.PARAM_VALUE,
                    f"-D {name}={given[:80]}: {error.message}",
                    f"{name} is an integer, such as {declared}",
                ) from None
        case str():
            if _NAME.fullmatch(given):
                return given
            raise TilefoldError(
                Code.PARAM_VALUE, f"-D {name}={given[:80]}: not a name", f"{name} is a name, such as {declared}"
            )
        case Text():
            inner = given[1:-1] if len(given) >= 2 and given[0] == given[-1] == '"' else given
            if _TEXT.fullmatch(inner):
                return Text(inner)
            raise TilefoldError(
                Code.PARAM_VALUE,
                f"-D {name}=...: the text holds a quote, a backslash, a control character, or is too long",
                f'{name} is text, such as "{declared.value}"',
            )


@dataclass
class _Expansion:
    """One pass over the text; what it has written so far, and the parameters that it has met."""

    name: str
    text: str
    given: Mapping[str, str]
    values: dict[str, Value] = field(default_factory=dict[str, Value])
    parts: list[str] = field(default_factory=list[str])
    pieces: list[Piece] = field(default_factory=list[Piece])
    size: int = 0

    def emit(self, text: str, origin: int, *, substituted: bool) -> None:
        if not text:
            return
        self.pieces.append(Piece(self.size, origin, substituted))
        self.parts.append(text)
        self.size += len(text)
        if self.size > MAX_BYTES:
            raise self.fault(
                Code.PARAM_TOO_LARGE, f"the text grows beyond {MAX_BYTES} characters here", origin, origin + 1
            )

    def fault(self, code: Code, message: str, start: int, end: int, hint: str = "") -> ProgramError:
        source = Source(self.name, self.text, self.text)
        line, column = source.position(start)
        place = Place(self.name, line, column, column + end - start, source.line(line))
        return ProgramError([Diagnostic(Severity.ERROR, message, place, code.id, hint)])

    def fault_in(self, error: ExpressionError, origin: int) -> ProgramError:
        code = next(code for code in Code if code.id == error.code)
        return self.fault(code, error.message, origin + error.start, origin + error.end, error.hint)

    def declare(self, body: str, origin: int) -> None:
        match = _BODY.fullmatch(body)
        if match is None:
            raise self.fault(
                Code.PARAM_SYNTAX,
                "malformed declaration of a parameter",
                origin,
                origin + len(body),
                "// param NAME = VALUE",
            )
        name, at = match["name"], origin + match.start("value")
        if name in self.values:
            raise self.fault(
                Code.PARAM_SYNTAX, f"parameter '{name}' is declared twice", origin + match.start("name"), at
            )
        if len(self.values) == MAX_PARAMS:
            raise self.fault(Code.PARAM_TOO_LARGE, f"more than {MAX_PARAMS} parameters", origin, at)
        try:
            value = _read_value(match["value"], self.values)
        except ExpressionError as error:
            raise self.fault_in(error, at) from error
        self.values[name] = _override(name, value, self.given[name], self.values) if name in self.given else value

    def use(self, start: int, in_text: bool) -> int:
        """Writes what `${...}` at `start` stands for and returns the offset after it."""
        end = self.text.find("}", start)
        if end < 0 or "\n" in self.text[start:end]:
            raise self.fault(Code.PARAM_SYNTAX, "'${' without a '}' on its line", start, start + 2)
        inner = self.text[start + 2 : end]
        try:
            node = parse_expression(inner)
            value = _lookup(node, self.values) if isinstance(node, Name) else evaluate_integer(node, self.values)
        except ExpressionError as error:
            raise self.fault_in(error, start + 2) from error
        quoted = (
            value.value
            if isinstance(value, Text) and in_text
            else f'"{value.value}"'
            if isinstance(value, Text)
            else ""
        )
        self.emit(quoted or str(value), start, substituted=True)
        return end + 1

    def run(self) -> None:
        at, copied, in_text = 0, 0, False
        while match := _SCAN.search(self.text, at):
            at = match.end()
            match match.lastgroup:
                case "comment" if not in_text:
                    start = self.text.rfind("\n", 0, match.start()) + 1
                    if declaration := _DECLARATION.fullmatch(self.text, start, match.end()):
                        self.declare(declaration["body"], declaration.start("body"))
                case "comment":
                    at = match.start() + 2
                case "quote":
                    in_text = not in_text
                case "line":
                    in_text = False  # an MLIR string ends on its line; the parser reports one that does not
                case "literal":
                    self.emit(self.text[copied : match.start()], copied, substituted=False)
                    self.emit("${", match.start(), substituted=True)
                    copied = at
                case "use":
                    self.emit(self.text[copied : match.start()], copied, substituted=False)
                    copied = at = self.use(match.start(), in_text)
                case _:
                    pass
        self.emit(self.text[copied:], copied, substituted=False)


def expand(text: str, name: str, given: Mapping[str, str] | None = None) -> Source:
    """The source with its parameters substituted; `given` holds the values of `-D NAME=VALUE`.

    Raises ProgramError for a fault in the text and TilefoldError for one in `given`: a value of the wrong
    kind, or a name that the file does not declare.
    """
    expansion = _Expansion(name, text, given or {})
    if "${" not in text and "param" not in text and not expansion.given:
        return Source(name, text, text)
    expansion.run()
    for extra in expansion.given:
        if extra not in expansion.values:
            known = ", ".join(expansion.values) or "none"
            raise TilefoldError(
                Code.PARAM_UNKNOWN, f"-D {extra}: {name} has no such parameter", f"it declares: {known}"
            )
    return Source(name, text, "".join(expansion.parts), tuple(expansion.pieces) or (Piece(0, 0, False),))
