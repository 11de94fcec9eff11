# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Diagnostics: the place and severity of a problem, its message, a hint, and the source line."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from xdsl.dialects.builtin import CallSiteLoc, FileLineColLoc, FusedLoc, NameLoc
from xdsl.ir import Attribute

from ...base.errors import Code, TilefoldError
from ...base.printable import message_text, printable, printable_line
from .source import Source


class Severity(Enum):
    """How serious a diagnostic is; an error ends the compilation."""

    ERROR = "error"
    WARNING = "warning"
    REMARK = "remark"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Place:
    """A place in a file: line and column from 1; `end` is the column after the marked text; `text` the whole line.

    `text` is empty when the file cannot be read.
    """

    file: str
    line: int
    column: int
    end: int = 0
    text: str = ""

    def __str__(self) -> str:
        return f"{printable_line(self.file)}:{self.line}:{self.column}"


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One message about a program. A note or a remark has no code."""

    severity: Severity
    message: str
    place: Place | None = None
    code: Code | None = None
    hint: str = ""

    def render(self) -> str:
        """The message as text, `file:line:column: error[E1001]: message`, then the line with the place marked."""
        code = f"[{self.code}]" if self.code else ""
        head = f"{self.severity.value}{code}: {message_text(self.message)}"
        lines = [head if self.place is None else f"{self.place}: {head}"]
        if self.place is not None and self.place.text:
            lines += _excerpt(self.place)
        if self.hint:
            lines.append(f"  hint: {message_text(self.hint)}")
        return "\n".join(lines)


_WORD = re.compile(r'"?[\w.$]+"?')  # the text that an operation's location marks: its name
_WIDTH = 120  # longest excerpt of a line


def _excerpt(place: Place) -> list[str]:
    start = place.column - 1
    length = max(1, min(place.end - place.column, len(place.text) - start))
    cut = max(0, start - _WIDTH // 2) if len(place.text) > _WIDTH else 0
    end = start + length
    before, marked = printable(place.text[cut:start]), printable(place.text[start:end])
    shown = f"{before}{marked}{printable(place.text[end:])}"[:_WIDTH]
    # a tab keeps its place in the marker's line, so that the marker stands below the marked text
    margin = "".join("\t" if character == "\t" else " " for character in before)
    return [f"  {shown}", f"  {margin}{'^' * max(1, min(len(marked), _WIDTH - len(before)))}"]


class ProgramError(TilefoldError):
    """A program that is refused, with every diagnostic that was found."""

    def __init__(self, diagnostics: Sequence[Diagnostic]) -> None:
        first = diagnostics[0]
        assert first.code is not None, "it is an error"
        super().__init__(first.code, first.message, first.hint)
        self.diagnostics = tuple(diagnostics)

    def __str__(self) -> str:
        return "\n".join(diagnostic.render() for diagnostic in self.diagnostics)


def place_of(location: Attribute, source: Source | None = None) -> Place | None:
    """The file, line and column that an operation's location names, or None for an unknown location.

    A named or fused location, or a call site, is where its first known part is.
    """
    match location:
        case FileLineColLoc():
            file, line, column = location.filename.data, location.line.data, location.column.data
            text = source.line_of(file, line) if source else ""
            word = _WORD.match(text, column - 1)
            return Place(file, line, column, column + len(word[0]) if word else 0, text)
        case NameLoc():
            return place_of(location.location, source)
        case CallSiteLoc():
            return place_of(location.callee, source) or place_of(location.caller, source)
        case FusedLoc():
            parts = getattr(location.locations, "data", ())
            return next((place for part in parts if (place := place_of(part, source))), None)
        case _:
            return None
