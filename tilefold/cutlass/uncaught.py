# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Errors of tilefold that a program does not catch: the message with the user's lines, and no lines of tilefold."""

import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from traceback import FrameSummary, extract_tb, format_list
from types import TracebackType

from tilefold.base.errors import TilefoldError
from tilefold.compiler.frontend.diagnostics import ProgramError
from tilefold.runtime.settings import shows_tracebacks

_OURS = str(Path(__file__).resolve().parents[2])
_LIBRARIES = tuple(sysconfig.get_paths()[name] for name in ("stdlib", "purelib", "platlib"))


def report_uncaught(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Prints an error as `sys.excepthook` does; of one of tilefold the user's lines that led to it, and the message.
    `TILEFOLD_TRACEBACK=1` shows all lines.
    """
    if not isinstance(error, TilefoldError) or shows_tracebacks():
        sys.__excepthook__(kind, error, trace)
        return
    lines = [] if isinstance(error, ProgramError) else format_list(list(_of_user(trace)))  # which names its lines
    print("".join(lines) + str(error), file=sys.stderr)


def _of_user(trace: TracebackType | None) -> Iterator[FrameSummary]:
    for frame in extract_tb(trace):
        path = str(Path(frame.filename).resolve())
        is_code = not frame.filename.startswith("<")
        if is_code and not path.startswith(_LIBRARIES) and not _is_ours(path):
            yield frame


def _is_ours(path: str) -> bool:
    """Whether a file is of this package, which lies in one folder, or in a checkout beside its subpackages."""
    folders = ("base", "builder", "compiler", "dialects", "layout", "passes", "runtime", "tilefold")
    return path.startswith(tuple(str(Path(_OURS, name)) + "/" for name in folders)) or "/tilefold/cutlass/" in path
