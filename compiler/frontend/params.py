# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Parameters of a `.cute` file.

A comment line of its own declares a parameter with its default, and every `${...}` after it is replaced
before the text is read as MLIR:

    // param TILE_M = 128                        an integer: any expression of integers and earlier parameters
    // param T = f16                             the name of a type
    // param THR = "(8,${TILE_M}):(${TILE_M},1)" a quoted text, such as a layout
    // param SWZ = 'S<3,3,3>' if TILE_M == 128 else 'S<2,3,3>'

    %g = tile.local_tile %A, "(${TILE_M},32)", (%m, %k)      // -> "(128,32)"
    %c = tile.tiled_copy #atom thr ${THR} val "${TILE_M / 16}:1"

Expressions have integers with `+ - * / // % **`, parentheses, `min` and `max`, where `/` must divide without remainder;
comparisons `== != < <= > >=`, `and`, `or` and `not`, which give 1 or 0; texts in single quotes; and `A if C else B`,
which evaluates only the branch taken. Names and strings have only `==` and `!=`. A string is inserted with its quotes,
or without them inside another string, after replacing `${...}` in it. `$${` stands for `${` itself. `-D TILE_M=64` on
the command line replaces a default by a value of the same kind, taken literally. Comments keep their text.

Other comment lines of their own choose lines, and check parameters:

    // if T == f16 and TILE_M >= 64
    // elif TILE_M == 32
    // else
    // end
    // assert TILE_M % 16 == 0, "TILE_M = ${TILE_M} is not a multiple of 16"

The lines of a branch that is not taken are left out, with the parameters and the assertions among them.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from ...base.errors import Code, TilefoldError
from ...dialects.run.grammar import CHOICE_WORDS, ExpressionError
from .diagnostics import Diagnostic, Place, ProgramError, Severity
from .file_format import check_format
from .param_values import (
    MAX_NESTING,
    USE,
    BranchError,
    Branches,
    Text,
    Value,
    evaluate_at,
    holds_at,
    insert,
    is_text,
    substituted,
)
from .source import MAX_BYTES, Piece, Source

MAX_PARAMS = 256
"""Most parameters that a file can declare."""

_LINE = r"//[ \t]*(?P<word>{})(?![\w-])(?P<body>[^\n]*)"
_DIRECTIVE = re.compile(_LINE.format("param|assert|if|elif|else|end"))
_BRANCH = re.compile(r"^[ \t]*" + _LINE.format("if|elif|else|end"), re.MULTILINE)
_BODY = re.compile(r"[ \t]+(?P<name>[A-Za-z_][A-Za-z0-9_]*)[ \t]*=[ \t]*(?P<value>\S.*)")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_USE = re.compile(USE)
_SCAN = re.compile(r'(?P<comment>//[^\n]*)|(?P<quote>")|(?P<escape>\\.)|(?P<literal>\$\$\{)|(?P<use>\$\{)|(?P<line>\n)')
_BLANKS = " \t\r"


def _read_value(text: str, at: int, names: Mapping[str, Value]) -> Value:
    """A declared value, written at offset `at`: quoted text, or an expression."""
    if not text.startswith('"'):
        return evaluate_at(text, at, names, declared=True)
    if len(text) < 2 or not text.endswith('"') or not is_text(text[1:-1]):
        raise ExpressionError(
            Code.PARAM_SYNTAX,
            "quoted text ends at the next quote of its line",
            at,
            at + len(text),
            hint="a string within an expression has single quotes: 'a' if N == 1 else 'b'" if " if " in text else "",
        )
    return substituted(text[1:-1], at + 1, names)


def _override(name: str, declared: Value, given: str, names: Mapping[str, Value]) -> Value:
    """The value of `-D name=given`, of the kind of the declared one. Raises TilefoldError."""
    match declared:
        case int():
            try:
                value = evaluate_at(given, 0, names)
                fault = "not an integer"
            except ExpressionError as error:
                value, fault = None, error.message
            if isinstance(value, int):
                return value
            raise TilefoldError(
                Code.PARAM_VALUE, f"-D {name}={given[:80]}: {fault}", f"{name} is an integer, such as {declared}"
            )
        case str():
            if _NAME.fullmatch(given):
                return given
            raise TilefoldError(
                Code.PARAM_VALUE, f"-D {name}={given[:80]}: not a name", f"{name} is a name, such as {declared}"
            )
        case Text():
            inner = given[1:-1] if len(given) >= 2 and given[0] == given[-1] == '"' else given
            if is_text(inner):
                return Text(inner)
            raise TilefoldError(
                Code.PARAM_VALUE,
                f"-D {name}=...: the text holds a quote, a backslash, a control character, or is too long",
                f'{name} is text, such as "{declared.value}"',
            )


@dataclass
class _Expansion:
    """One pass over the text; its output so far, and the parameters declared so far."""

    name: str
    text: str
    given: Mapping[str, str]
    values: dict[str, Value] = field(default_factory=dict[str, Value])
    branches: Branches = field(default_factory=Branches)
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
        return ProgramError([Diagnostic(Severity.ERROR, message, place, code, hint)])

    def fault_in(self, error: ExpressionError) -> ProgramError:
        return self.fault(error.code, error.message, error.start, error.end, error.hint)

    def declare(self, body: str, origin: int) -> None:
        match = _BODY.fullmatch(body.rstrip(_BLANKS))
        if match is None:
            raise self.fault(
                Code.PARAM_SYNTAX,
                "malformed declaration of a parameter",
                origin,
                origin + len(body),
                "// param NAME = VALUE",
            )
        name, at = match["name"], origin + match.start("value")
        if name in self.values or name in CHOICE_WORDS:
            problem = "is declared twice" if name in self.values else "has the name of an operator"
            raise self.fault(Code.PARAM_SYNTAX, f"parameter '{name}' {problem}", origin + match.start("name"), at)
        if len(self.values) == MAX_PARAMS:
            raise self.fault(Code.PARAM_TOO_LARGE, f"more than {MAX_PARAMS} parameters", origin, at)
        try:
            value = _read_value(match["value"], at, self.values)
        except ExpressionError as error:
            raise self.fault_in(error) from error
        self.values[name] = _override(name, value, self.given[name], self.values) if name in self.given else value

    def use(self, start: int, in_text: bool) -> int:
        """Writes the replacement of `${...}` at `start` and returns the offset after it."""
        match = _USE.match(self.text, start)
        if match is None:
            raise self.fault(Code.PARAM_SYNTAX, "'${' without a '}' on its line", start, start + 2)
        try:
            new = insert(match["inner"], start + 2, self.values, in_text=in_text)
        except ExpressionError as error:
            raise self.fault_in(error) from error
        self.emit(new, start, substituted=True)
        return match.end()

    def holds(self, word: str, condition: str, origin: int) -> bool:
        """Whether the condition of a line `// word condition` holds."""
        try:
            return holds_at(condition.rstrip(_BLANKS), origin, self.values)
        except ExpressionError as error:
            if error.code == Code.EXPRESSION_SYNTAX and not error.hint:
                error.hint = f"a comment line that begins with '{word}' is a condition; begin prose with another word"
            raise self.fault_in(error) from error

    def check(self, body: str, origin: int) -> None:
        """Checks `// assert CONDITION, "MESSAGE"`."""
        head, quote, tail = body.partition('"')
        condition, message = head.rstrip(_BLANKS), tail.rstrip(_BLANKS)
        if not quote or not condition.endswith(",") or not message.endswith('"') or not is_text(message[:-1]):
            raise self.fault(
                Code.PARAM_SYNTAX,
                "malformed assertion",
                origin,
                origin + max(len(body), 1),
                '// assert CONDITION, "MESSAGE"',
            )
        if not self.holds("assert", condition[:-1], origin):
            try:
                message_text = substituted(message[:-1], origin + len(head) + 1, self.values).value
            except ExpressionError as error:
                raise self.fault_in(error) from error
            at = origin + len(condition) - len(condition.lstrip(_BLANKS))
            values = ", ".join(f"{name}={value}" for name, value in self.values.items() if isinstance(value, int))
            raise self.fault(Code.PARAM_ASSERT, message_text, at, origin + len(condition) - 1, f"here {values}"[:400])

    def branch(self, match: re.Match[str]) -> None:
        """Goes on to the lines after `// if`, `// elif`, `// else` or `// end`."""
        word, body, origin = match["word"], match["body"].rstrip(_BLANKS), match.start("word")
        if word in ("else", "end") and body:
            hint = f"'// {word}' stands alone on its line" + ("; '// elif' has a condition" if word == "else" else "")
            raise self.fault(Code.PARAM_BRANCH, f"text after '// {word}'", origin, match.end(), hint)
        if word == "if" and self.branches.full:
            raise self.fault(
                Code.PARAM_TOO_LARGE, f"more than {MAX_NESTING} '// if' inside each other", origin, match.end()
            )
        try:
            self.branches.step(word, origin, lambda: self.holds(word, body, match.start("body")))
        except BranchError as error:
            raise self.fault(Code.PARAM_BRANCH, str(error), origin, match.end()) from None

    def skip(self, at: int) -> int:
        """The offset of the next line that is read, after those that the branches leave out."""
        for match in _BRANCH.finditer(self.text, at):
            self.branch(match)
            if self.branches.active:
                return match.start()
        return len(self.text)

    def directive(self, match: re.Match[str], copied: int) -> tuple[int, int]:
        """Obeys a comment line; returns where to read on, and from where text is still to be copied."""
        origin, end = match.start("body"), match.end()
        match match["word"]:
            case "param":
                self.declare(match["body"], origin)
            case "assert":
                self.check(match["body"], origin)
            case _:
                self.branch(match)
                if not self.branches.active:
                    after = min(end + 1, len(self.text))
                    self.emit(self.text[copied:after], copied, substituted=False)
                    copied = self.skip(after)
                    newline = self.text.find("\n", copied)  # the line that ended the branch is obeyed already
                    end = len(self.text) if newline < 0 else newline
        return end, copied

    def run(self) -> None:
        at, copied, in_text = 0, 0, False
        while match := _SCAN.search(self.text, at):
            at = match.end()
            match match.lastgroup:
                case "comment" if not in_text:
                    start = self.text.rfind("\n", 0, match.start()) + 1
                    alone = not self.text[start : match.start()].strip(_BLANKS)
                    if alone and (line := _DIRECTIVE.fullmatch(self.text, match.start(), match.end())):
                        at, copied = self.directive(line, copied)
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
        if (unclosed := self.branches.unclosed) is not None:
            raise self.fault(Code.PARAM_BRANCH, "'// if' without an '// end'", unclosed, unclosed + 2)
        self.emit(self.text[copied:], copied, substituted=False)


def expand(text: str, name: str, given: Mapping[str, str] | None = None) -> Source:
    """The source with its parameters substituted; `given` holds the values of `-D NAME=VALUE`.

    Raises ProgramError for a fault in the text and TilefoldError for one in `given`: a value of the wrong
    kind, or a name that the file does not declare.
    """
    check_format(text, name)
    expansion = _Expansion(name, text, given or {})
    if "${" not in text and not expansion.given and not _DIRECTIVE.search(text):
        return Source(name, text, text)
    expansion.run()
    for extra in expansion.given:
        if extra not in expansion.values:
            known = f"it declares: {', '.join(expansion.values)}" if expansion.values else "it declares no parameters"
            raise TilefoldError(Code.PARAM_UNKNOWN, f"-D {extra}: {name} does not declare it", known)
    return Source(name, text, "".join(expansion.parts), tuple(expansion.pieces) or (Piece(0, 0, False),))
