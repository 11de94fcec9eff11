# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A `.cute` file that is being edited: its faults, its names, their places and meanings.

Names are found in the text, so that they are known while it is faulty; types and operations come from the program, if
it can be read. All offsets are those of characters in the text as written.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property

from xdsl.dialects.builtin import FileLineColLoc, ModuleOp
from xdsl.ir import Attribute, Operation

from tilefold.base.errors import TilefoldError
from tilefold.base.limits import deadline
from tilefold.compiler.frontend.diagnostics import Diagnostic, ProgramError, Severity
from tilefold.compiler.frontend.params import expand
from tilefold.compiler.frontend.program import parse_program
from tilefold.compiler.frontend.source import Source, plain_source
from tilefold.compiler.pipeline import make_context
from tilefold.driver.lowering import Program
from tilefold.tools.editing.highlighting import NAME

MAX_SECONDS = 10.0
"""The time that reading a file may take, and that lowering it may take, after which the editor gets an error."""
MAX_DEPTH = 256
"""The braces around a name that count; a program has fewer."""
_NAMES = re.compile(
    rf"(?P<skipped>//(?![ \t]*(?:param|assert|if|elif)\b)[^\n]*|\\.)|(?P<brace>[{{}}])"
    rf"|(?P<param>\$\{{[^}}\n]*\}}?|//[^\n]*)|(?P<name>[%@^]{NAME}|[%^]\d+|[!#][A-Za-z_][\w$-]*(?![\w.<-]))"
)
_PARAM = re.compile(r"[A-Za-z_]\w*")
_DECLARED = re.compile(r"^[ \t]*//[ \t]*param[ \t]+([A-Za-z_]\w*)", re.MULTILINE)
_RESULTS = re.compile(r"^[ \t]*(%[\w$.-]+(?::\d+)?(?:[ \t]*,[ \t]*%[\w$.-]+(?::\d+)?)*)[ \t]*=[ \t]*", re.MULTILINE)
_BLANKS = re.compile(r"\s*")
_ARGUMENT = re.compile(r":(?!\d)")
_HEADER = re.compile(r"[@^][\w$.-]+[ \t]*$")
_SYMBOL = re.compile(r"\b(?:module|kernel|func)(?:[ \t]+(?:private|public))?[ \t]+$")


@dataclass(frozen=True, slots=True)
class Occurrence:
    """A name in the text: with its sigil (`%x`, `@f`, `!A`, `#a`, `^b`), or a parameter's (`TILE`). `scope` has the
    places of the braces around it, the outermost first.
    """

    name: str
    start: int
    scope: tuple[int, ...]
    defines: bool

    @property
    def end(self) -> int:
        """The offset after it."""
        return self.start + len(self.name)


@dataclass(frozen=True)
class Document:
    """The text of a file, and all that is found in it."""

    name: str
    text: str

    @cached_property
    def occurrences(self) -> Sequence[Occurrence]:
        """Every name of the text, in its order."""
        return tuple(self._occurrences())

    @cached_property
    def _definitions(self) -> Mapping[str, Sequence[Occurrence]]:
        """The definitions of each name, in their order."""
        definitions: dict[str, list[Occurrence]] = {}
        for occurrence in self.occurrences:
            if occurrence.defines:
                definitions.setdefault(occurrence.name, []).append(occurrence)
        return definitions

    @cached_property
    def source(self) -> Source:
        """The text with its parameters substituted, or as it is written where one is faulty."""
        try:
            return expand(self.text, self.name)
        except TilefoldError:
            return plain_source(self.text, self.name)

    @cached_property
    def _read(self) -> tuple[Program | None, Sequence[Diagnostic]]:
        try:
            source, context = expand(self.text, self.name), make_context()
            with _in_time():
                return Program(source, parse_program(source, context), context), ()
        except ProgramError as error:
            return None, error.diagnostics

    @property
    def module(self) -> ModuleOp | None:
        """The verified program; None for a faulty one."""
        return None if self._read[0] is None else self._read[0].module

    @property
    def faults(self) -> Sequence[Diagnostic]:
        """The faults that are found by reading the text."""
        return self._read[1]

    def deep_faults(self) -> Sequence[Diagnostic]:
        """The faults that are found by reading the text and by lowering it: by all passes down to stage `instr`."""
        program = self._read[0]
        if program is None:
            return self.faults
        try:
            with _in_time(), program.explaining():
                program.reached("instr", program.simulated_target("instr"))
        except ProgramError as error:
            return error.diagnostics
        except TilefoldError as error:
            return (Diagnostic(Severity.ERROR, error.message, None, error.code, error.hint),)
        return ()

    def at(self, offset: int) -> Occurrence | None:
        """The name at an offset, or that ends there."""
        return next(
            (occurrence for occurrence in self.occurrences if occurrence.start <= offset <= occurrence.end), None
        )

    def definition(self, use: Occurrence) -> Occurrence | None:
        """The definition of the name that is used there: the last definition before it that it can see, else the first
        in the text, as of a function that is called before it.
        """
        if use.defines:
            return use
        definitions = self._definitions.get(use.name, ())
        for index in reversed(range(bisect_left(definitions, use.start, key=lambda candidate: candidate.start))):
            candidate = definitions[index]
            if candidate.name[0] != "%" or candidate.scope == use.scope[: len(candidate.scope)]:
                return candidate
        return definitions[0] if definitions and use.name[0] != "%" else None

    def uses(self, use: Occurrence) -> list[Occurrence]:
        """Every occurrence of the object of a name, its definition among them."""
        home = self.definition(use)
        return [
            occurrence
            for occurrence in self.occurrences
            if occurrence.name == use.name and self.definition(occurrence) == home
        ]

    def visible(self, offset: int) -> list[Occurrence]:
        """The definitions that can be named at an offset: values of the braces around it, and all other names."""
        scope = self._scope(offset)
        definitions = [definition for definition in self.occurrences if definition.defines]
        return [
            definition
            for definition in definitions
            if definition.name[0] not in "%^"
            or (definition.end < offset and definition.scope == scope[: len(definition.scope)])
        ]

    def operation(self, offset: int) -> Operation | None:
        """The operation whose name is at an offset."""
        return self._operations.get(self.source.position(offset))

    def type_of(self, definition: Occurrence) -> Attribute | None:
        """The type of the value that is defined there; None if the program cannot be read."""
        line_start = self.text.rfind("\n", 0, definition.start) + 1
        results = _RESULTS.match(self.text, line_start)
        if results is not None and definition.start < results.end(1):
            names = [name.partition(":")[0].strip() for name in results[1].split(",")]
            op = self.operation(results.end())
            index = names.index(definition.name)
            return op.results[index].type if op is not None and index < len(op.results) else None
        line = self.source.position(definition.start)[0]
        owners = [op for (at, _), op in self._operations.items() if at <= line]
        for op in reversed(owners):  # the nearest operation with a block that has such an argument
            for region in op.regions:
                for argument in (argument for block in region.blocks for argument in block.args):
                    if argument.name_hint == definition.name[1:]:
                        return argument.type
        return None

    def value_of(self, parameter: str) -> str | None:
        """The text that a parameter stands for; None if it has none yet."""
        if parameter not in self.parameters:
            return None
        try:
            return expand(f"{self._directives}\n${{{parameter}}}", self.name).expanded.rpartition("\n")[2]
        except TilefoldError:
            return None

    @cached_property
    def parameters(self) -> Sequence[str]:
        """The names of the parameters, in the order of their declarations."""
        return tuple(dict.fromkeys(_DECLARED.findall(self.text)))

    @cached_property
    def _directives(self) -> str:
        """The lines that declare parameters and choose among them."""
        lines = (line for line in self.text.splitlines() if line.lstrip().startswith("//"))
        return "\n".join(lines)

    @cached_property
    def _operations(self) -> Mapping[tuple[int, int], Operation]:
        """The operations by the line and column of their names."""
        operations: dict[tuple[int, int], Operation] = {}
        for op in self.module.walk() if self.module is not None else ():
            if isinstance(place := op.location, FileLineColLoc):
                operations.setdefault((place.line.data, place.column.data), op)
        return operations

    def _scope(self, offset: int) -> tuple[int, ...]:
        scope: list[int] = []
        for match in _NAMES.finditer(self.text, 0, offset):
            _step(scope, match)
        return tuple(scope[:MAX_DEPTH])

    def _occurrences(self) -> Iterator[Occurrence]:
        scope: list[int] = []
        parameters, line = set(self.parameters), _Line(self.text)
        for match in _NAMES.finditer(self.text):
            _step(scope, match)
            line.reach(match.start())
            if match["param"]:
                declares = _DECLARED.match(self.text, line.start)
                for name in _PARAM.finditer(match[0]):
                    start = match.start() + name.start()
                    if name[0] in parameters:
                        yield Occurrence(name[0], start, (), declares is not None and declares.start(1) == start)
            elif name := match["name"]:
                yield Occurrence(
                    name, match.start(), tuple(scope[:MAX_DEPTH]), line.defines(name, match.start(), match.end())
                )


def _in_time() -> AbstractContextManager[None]:
    """The limit of the work on a file, during which the editor gets no answer."""
    return deadline(MAX_SECONDS, "the work on the file", "run `tilefold compile` on it, which takes more time")


@dataclass(slots=True)
class _Line:
    """The line of a name, where a text is read name by name: `blank` is the end of the blanks that it begins with,
    `results` that of the results before an operation, and `bracket` the last parenthesis, which is open or not.
    """

    text: str
    start: int = 0
    blank: int = -1
    results: int = -1
    bracket: int = -1
    is_open: bool = False
    _at: int = 0

    def reach(self, offset: int) -> None:
        """Goes on to an offset."""
        opened, closed = self.text.rfind("(", self._at, offset), self.text.rfind(")", self._at, offset)
        if max(opened, closed) >= 0:
            self.bracket, self.is_open = max(opened, closed), opened > closed
        newline = self.text.rfind("\n", self._at, offset)
        if newline >= 0 or self.blank < 0:
            self.start = newline + 1
            blanks, results = _BLANKS.match(self.text, self.start), _RESULTS.match(self.text, self.start)
            self.blank = self.start if blanks is None else blanks.end()
            self.results = -1 if results is None else results.end(1)
        self._at = offset

    def defines(self, name: str, start: int, end: int) -> bool:
        """Whether a name at an offset that was reached is defined there."""
        after = self.text[end : end + 40].lstrip(" \t")
        match name[0]:
            case "@":
                return _SYMBOL.search(self.text[max(self.start, start - 80) : start]) is not None
            case "^":
                return start == self.blank
            case "!" | "#":
                return start == self.blank and after.startswith("=")
            case _:
                if after.startswith("=") or (start == self.blank and re.match(r":\d+[ \t]*[=,]", after)):
                    return True
                if start < self.results:
                    return True
                # an argument with its type: the types of operands come after a blank
                return _ARGUMENT.match(self.text, end) is not None or (after.startswith(":") and self._is_in_header())

    def _is_in_header(self) -> bool:
        """Whether the parenthesis around the offset has the arguments of a function, a kernel or a block."""
        at = self.bracket
        return self.is_open and _HEADER.search(self.text[max(at - 80, 0) : at]) is not None


def _step(scope: list[int], match: re.Match[str]) -> None:
    """Goes on past a brace."""
    if match["brace"] == "{":
        scope.append(match.start())
    elif match["brace"] == "}" and scope:
        scope.pop()
