# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which operations, PTX and machine instructions a line of the source became, and from which line each of them is."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import FileLineColLoc

from .listing import Listing

Spot = tuple[str, int]
"""A file and a line."""
_FILE = re.compile(r'^\t\.file\t(\d+) "([^"]*)"', re.MULTILINE)
_LOC = re.compile(r"^\t\.loc\t(\d+) (\d+) \d+")
_PTX = re.compile(r"^\t(?:@!?%p\d+ )?[a-z][\w.:]*[ \t;]|^\$\w+:")
_TEXT_BEGINS, _TEXT_ENDS = "\t// begin inline asm", "\t// end inline asm"
_SASS = re.compile(r"^\s+/\*([0-9a-f]{4,})\*/\s+(.*?)\s*$")
_SASS_LINE = re.compile(r'^\t//## File "([^"]*)", line (\d+)')
_FUNCTION = re.compile(r"^\.text\.(\S+):$")


@dataclass(frozen=True, slots=True)
class CodeLine:
    """A line of code: its number in its text, from 1, the text, and the place in the source that it is from."""

    number: int
    text: str
    spot: Spot | None


def ir_lines(listing: Listing) -> list[CodeLine]:
    """The operations of a program."""
    code: list[CodeLine] = []
    for number, line in enumerate(listing.lines, 1):
        location = None if line.op is None else line.op.location
        known = isinstance(location, FileLineColLoc)
        code.append(CodeLine(number, line.text, (location.filename.data, location.line.data) if known else None))
    return code


def map_ptx_lines(ptx: str, files: Mapping[str, str]) -> list[CodeLine]:
    """The lines of PTX without its `.loc` directives; each instruction, and each line of a text that the program has,
    from the last of these before it. `files` are the files of the source by their names in PTX.
    """
    names = {number: files.get(name, name) for number, name in _FILE.findall(ptx)}
    spot: Spot | None = None
    is_text = False
    code: list[CodeLine] = []
    for number, text in enumerate(ptx.splitlines(), 1):
        if is_text or text == _TEXT_BEGINS:
            is_text = text != _TEXT_ENDS
            code.append(CodeLine(number, text, spot))
            continue
        if (match := _LOC.match(text)) is not None:
            spot = (names.get(match[1], ""), int(match[2])) if match[2] != "0" else None
            continue
        if text.startswith(("}", ".visible", ".entry")):
            spot = None
        if not text.startswith("\t.file"):
            code.append(CodeLine(number, text, spot if _PTX.match(text) else None))
    return code


def map_sass_lines(text: str, files: Mapping[str, str]) -> list[CodeLine]:
    """The machine instructions that nvdisasm prints, and the name of each kernel before its own."""
    spot: Spot | None = None
    code: list[CodeLine] = []
    for number, line in enumerate(text.splitlines(), 1):
        if (match := _SASS_LINE.match(line)) is not None:
            spot = files.get(match[1], match[1]), int(match[2])
        elif (match := _FUNCTION.match(line)) is not None:
            spot = None
            code.append(CodeLine(number, f"{match[1]}:", None))
        elif (match := _SASS.match(line)) is not None and match[2]:
            code.append(CodeLine(number, f"/*{match[1]}*/ {match[2]}", spot))
    return code


@dataclass(frozen=True)
class SourceMap:
    """The code of a program in several forms, such as `ptx` and `sass`; `missing` says which has none, and why."""

    forms: Mapping[str, Sequence[CodeLine]]
    missing: Mapping[str, str]

    def spots(self) -> list[Spot]:
        """The lines of the source that any code is from, in order."""
        return sorted({line.spot for lines in self.forms.values() for line in lines if line.spot is not None})

    def at(self, spot: Spot) -> Iterator[tuple[str, CodeLine]]:
        """The code from a line of the source, form by form."""
        for form, lines in self.forms.items():
            yield from ((form, line) for line in lines if line.spot == spot)
