# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks diagnostics against the comments that a test file announces them by, as MLIR's `-verify-diagnostics` does.

    // expected-error@+1 {{the tiler does not divide}}
    %g = tile.local_tile ...        // expected-remark {{chose cp.async}}

The text in braces is part of the message or its code. `@+N` and `@-N` count lines from the comment, `@below` is the
next line without such a comment, `@above` the last one, and `@unknown` expects a diagnostic without a place.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from .diagnostics import Diagnostic, Place, Severity
from .source import Source

_EXPECTED = re.compile(
    r"expected-(?P<severity>error|warning|remark|note)[ \t]*"
    r"(?:@(?P<where>[+-]\d{1,9}|above|below|unknown))?[ \t]*\{\{(?P<text>.*?)\}\}"
)


@dataclass(frozen=True, slots=True)
class Expectation:
    """One announced diagnostic; `line` is None if it has no place, `at` is the line of the comment itself."""

    severity: Severity
    text: str
    line: int | None
    at: int

    def meets(self, diagnostic: Diagnostic, name: str) -> bool:
        """Whether a diagnostic is the announced one, for the file of this name."""
        place = diagnostic.place
        line = place.line if place is not None and place.file == name else None
        text = f"{diagnostic.message} [{diagnostic.code}]"
        return diagnostic.severity is self.severity and line == self.line and self.text in text


def find_expectations(source: Source) -> list[Expectation]:
    """The diagnostics that the comments of a text announce, in order."""
    announced: list[Expectation] = []
    lines = source.text.split("\n")
    marked = [bool(_EXPECTED.search(line, line.find("//"))) if "//" in line else False for line in lines]
    for number, line in enumerate(lines, 1):
        if not marked[number - 1]:
            continue
        for match in _EXPECTED.finditer(line, line.find("//")):
            target = _target(match["where"] or "+0", number, marked)
            announced.append(Expectation(Severity(match["severity"]), match["text"], target, number))
    return announced


def _target(where: str, number: int, marked: Sequence[bool]) -> int | None:
    """The line that an expectation on line `number` is about; `@below` and `@above` skip lines of expectations."""
    match where:
        case "unknown":
            return None
        case "below" | "above":
            step = 1 if where == "below" else -1
            number += step
            while 0 < number <= len(marked) and marked[number - 1]:
                number += step
            return number
        case _:
            return number + int(where)


def find_unmet(source: Source, diagnostics: Sequence[Diagnostic]) -> list[Diagnostic]:
    """Errors for diagnostics announced but not produced, and produced but not announced; empty if they match."""
    open_expectations = find_expectations(source)
    faults: list[Diagnostic] = []
    for diagnostic in diagnostics:
        for expectation in open_expectations:
            if expectation.meets(diagnostic, source.name):
                open_expectations.remove(expectation)
                break
        else:
            kind = diagnostic.severity.value
            message = f"unexpected {kind}: {diagnostic.message}"
            faults.append(Diagnostic(Severity.ERROR, message, diagnostic.place, diagnostic.code, diagnostic.hint))
    for expectation in open_expectations:
        place = Place(source.name, expectation.at, 1, text=source.line(expectation.at))
        message = f"expected {expectation.severity.value} was not produced: {expectation.text}"
        faults.append(Diagnostic(Severity.ERROR, message, place))
    return faults
