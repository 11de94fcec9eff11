# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The assembler's messages about lost speed, at the lines of the program that they are about.

They name lines of the PTX; where that has been written with the lines of the source, these are known.
"""

import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import NoReturn

from xdsl.dialects.builtin import FileLineColLoc, IntAttr, StringAttr

from ...base.assembler_warnings import AssemblerWarning, assembler_warnings
from ...base.errors import Code
from ...dialects.ptx import EntryOp
from ...passes.analysis.wgmma_fragments import find_calls
from ..emit.lineinfo import source_files
from ..frontend.diagnostics import Diagnostic, Place, ProgramError, Severity, place_of
from ..frontend.source import Source
from .remarks import Remark

_FILE = re.compile(r'^\s*\.file\s+(\d+) "([^"]*)"', re.MULTILINE)
_LOCATION = re.compile(r"^\s*\.loc\s+(\d+) (\d+) (\d+)")


def assembler_remarks(log: str, ptx: str, entries: Sequence[EntryOp], source: Source) -> tuple[Remark, ...]:
    """The messages of a log as remarks, with their cures. `entries` are the kernels of stage `instr`."""
    return tuple(
        Remark(place, "cubin", "assembler", message.remark)
        for message, place in _place_messages(log, ptx, entries, source)
    )


def warn_of_slower(log: str, ptx: str, entries: Sequence[EntryOp], source: Source) -> None:
    """A RuntimeWarning for each message of a log, at its place, but for those that cost next to nothing."""
    for message, place in _place_messages(log, ptx, entries, source):
        if not message.harmless:
            warnings.warn(f"{'' if place is None else f'{place}: '}{message.remark}", RuntimeWarning, stacklevel=3)


def refuse_slower(log: str, ptx: str, entries: Sequence[EntryOp], source: Source) -> NoReturn:
    """ProgramError (E2303) with the messages of a log, if at least one counts as an error."""
    raise ProgramError(
        [
            Diagnostic(Severity.ERROR, str(message), place, Code.ASSEMBLE_SLOWER, message.hint)
            for message, place in _place_messages(log, ptx, entries, source)
            if message.refused
        ]
    )


def _place_messages(
    log: str, ptx: str, entries: Sequence[EntryOp], source: Source
) -> Iterator[tuple[AssemblerWarning, Place | None]]:
    """Each message with its place: the line of PTX that it names, else its kernel or the only one. One about
    calls has the place of each of them.
    """
    files = source_files(entries)
    for message in assembler_warnings(log):
        named = [entry for entry in entries if entry.sym_name.data == message.kernel] or entries
        calls = [op for entry in named for op in find_calls(entry)] if message.is_of_calls else []
        place = _place_in_source(ptx, message.line, files)
        if place is None and len(named) == 1:
            place = named[0].location
        places = [op.location for op in calls] or [place]
        yield from ((message, None if place is None else place_of(place, source)) for place in places)


def _place_in_source(ptx: str, line: int, files: Mapping[str, str]) -> FileLineColLoc | None:
    """The place in the source that a line of PTX is from, by the last `.loc` before it in its function. `files` are
    those of the source by their names in PTX.
    """
    for text in reversed(ptx.splitlines()[:line]):
        if (match := _LOCATION.match(text)) is not None:
            file, at, column = match.groups()
            name = files.get(dict(_FILE.findall(ptx)).get(file, ""))
            return (
                FileLineColLoc(StringAttr(name), IntAttr(int(at)), IntAttr(int(column))) if name and at != "0" else None
            )
        if ".entry" in text:
            return None
    return None
