# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Errors that nothing in a program catches, as its user sees them: with the lines of the program."""

import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from traceback import FrameSummary, StackSummary, TracebackException, extract_tb, format_list
from types import TracebackType

from tilefold.base.errors import TilefoldError
from tilefold.compiler.frontend.diagnostics import ProgramError
from tilefold.runtime.settings import shows_tracebacks

_OURS = str(Path(__file__).resolve().parents[2])
_LIBRARIES = tuple(sysconfig.get_paths()[name] for name in ("stdlib", "purelib", "platlib"))


def report_uncaught(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Prints an error as `sys.excepthook` does; of one of tilefold the user's lines that led to it, and the message; of
    any other one all lines but those of tilefold. `TILEFOLD_TRACEBACK=1` shows all lines.
    """
    if shows_tracebacks():
        sys.__excepthook__(kind, error, trace)
        return
    if not isinstance(error, TilefoldError):
        print(*_without_ours(TracebackException(kind, error, trace)).format(), sep="", end="", file=sys.stderr)
        return
    lines = [] if isinstance(error, ProgramError) else format_list(list(lines_of_user(trace)))  # which names its lines
    print("".join(lines) + str(error), file=sys.stderr)


def lines_of_user(trace: TracebackType | None) -> Iterator[FrameSummary]:
    """The lines of a traceback that are neither of tilefold nor of a package."""
    for frame in extract_tb(trace):
        if _is_code(frame) and not str(Path(frame.filename).resolve()).startswith(_LIBRARIES):
            yield frame


def _without_ours(shown: TracebackException) -> TracebackException:
    """An exception, and those before it, without the lines of tilefold and of Python's own machinery."""
    before: TracebackException | None = shown
    while before is not None:
        before.stack = StackSummary.from_list([frame for frame in before.stack if _is_code(frame)])
        before = before.__cause__ or before.__context__
    return shown


def _is_code(frame: FrameSummary) -> bool:
    """Whether a line is one of a file, and not of this package, which lies in one folder, or in a checkout beside its
    subpackages.
    """
    path = str(Path(frame.filename).resolve())
    folders = ("base", "builder", "compiler", "dialects", "layout", "passes", "runtime", "tilefold")
    is_ours = path.startswith(tuple(str(Path(_OURS, name)) + "/" for name in folders)) or "/tilefold/cutlass/" in path
    return not frame.filename.startswith("<") and not is_ours


def in_a_line(error: Exception) -> str:
    """An error as one line: the place in the user's files, the type unless it is one of tilefold, and the message."""
    if isinstance(error, SyntaxError):
        return f"{error.filename}:{error.lineno}: {type(error).__name__}: {error.msg}"
    if isinstance(error, ProgramError):
        return first_line(error)  # which has the place
    at = next(reversed([*lines_of_user(error.__traceback__)]), None)
    place = "" if at is None else f"{at.filename}:{at.lineno}: "
    kind = "" if isinstance(error, TilefoldError) else f"{type(error).__name__}: "
    return f"{place}{kind}{first_line(error)}"


def first_line(text: object) -> str:
    """The first line of a text."""
    return f"{text}\n"[: f"{text}\n".index("\n")]
