# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Prints diagnostics: plain text, and in colour on a terminal."""

import json
import shlex
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from traceback import extract_tb, format_exception
from typing import TYPE_CHECKING

from tilefold.base.errors import Code, TilefoldError
from tilefold.base.printable import message_text, printable, printable_line
from tilefold.driver.output import terminal_of

if TYPE_CHECKING:
    from tilefold.compiler.reports.remarks import Remark


def print_error(error: TilefoldError) -> None:
    """Prints a user's mistake on the standard error: every diagnostic of a program, or `error[E4001]: ...`."""
    diagnostics = getattr(error, "diagnostics", None)
    if diagnostics is None:
        given = getattr(error, "place", "")
        place = printable_line(given) if isinstance(given, str) else ""  # of a file that is not text
        message = message_text(error.message)
        text = f"{place}: error[{error.code}]: {message}" if place else f"error[{error.code}]: {message}"
        if error.hint:
            text += f"\n  hint: {message_text(error.hint)}"
    else:
        text = "\n".join(diagnostic.render() for diagnostic in diagnostics)
    print_diagnostics(text)


def print_diagnostics(text: str) -> None:
    """Prints rendered diagnostics on the standard error; on a terminal `error` and `warning` stand out."""
    text = printable(text)
    if not sys.stderr.isatty():
        print(text, file=sys.stderr)
        return
    from rich.console import Console
    from rich.text import Text

    styled = Text(text)
    styled.highlight_regex(r"\berror(\[E\d+\])?:", "bold red")
    styled.highlight_regex(r"\bwarning(\[E\d+\])?:", "bold yellow")
    styled.highlight_regex(r"\b(note|remark):", "bold cyan")
    styled.highlight_regex(r"(?m)^\s+\^+$", "green")
    styled.highlight_regex(r"(?m)^  hint:.*$", "cyan")
    console = Console(file=terminal_of(sys.stderr), soft_wrap=True)
    console.print(styled)


def print_remarks(remarks: "Sequence[Remark]", form: str) -> None:
    """Prints remarks on the standard error, as `text` or as `json`."""
    if form == "json":
        print(json.dumps([remark.as_dict() for remark in remarks], indent=2), file=sys.stderr)
    elif remarks:
        print_diagnostics("\n".join(remark.diagnostic.render() for remark in remarks))


def explain_environment_error(error: Exception) -> TilefoldError | None:
    """The user's error of a failure that the machine has caused: of memory, or of a file. None for any other.

    A library's exception for a failed allocation depends on where it fails, so that the causes are asked as well.
    """
    if any(
        isinstance(cause, MemoryError) or any(words in str(cause) for words in _NO_MEMORY) for cause in _causes(error)
    ):
        return TilefoldError(
            Code.NO_MEMORY,
            "there is not enough memory",
            "limits such as `ulimit -v` count all mapped memory, and tilefold maps half a GiB",
        )
    if isinstance(error, OSError) and isinstance(error.filename, str):
        return TilefoldError(Code.CLI_READ, f"{error.filename}: {error.strerror}")
    return None


_NO_MEMORY = ("failed to map segment", "annot allocate memory", "can't start new thread")
"""Messages of the dynamic linker, the system and Python for failed allocations."""


def interrupt_of(error: Exception) -> KeyboardInterrupt | None:
    """The interrupt that an error stems from, if any."""
    return next((cause for cause in _causes(error) if isinstance(cause, KeyboardInterrupt)), None)


def _causes(error: BaseException) -> Iterator[BaseException]:
    """An error and its causes."""
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__ or cause.__context__


def print_internal_error(error: Exception, arguments: Sequence[str]) -> None:
    """Prints one line about a bug of tilefold: the failure and the command that repeats it; keeps the rest in a
    folder."""
    command = ["tilefold", *arguments]
    failed_pass: str = getattr(error, "pass_name", "")
    try:
        folder = Path(tempfile.mkdtemp(prefix="tilefold-"))
        (folder / "internal-error.txt").write_text("".join(format_exception(error)), encoding="utf-8")
        if failed_pass:  # an InternalError of the driver, which knows the program that the pass was given
            program = folder / "program.cute"
            program.write_text(getattr(error, "program", ""), encoding="utf-8")
            command = ["tilefold", "opt", str(program), "-p", failed_pass]
        details = f"details kept in {folder}"
    except OSError as reason:
        details = f"details not kept: {reason.strerror}"
    first = error.__cause__ if failed_pass and error.__cause__ is not None else error
    frames = extract_tb(first.__traceback__)
    place = f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    words = " ".join(str(first).split())[:300]
    report = f"tilefold: internal error: {type(first).__name__}: {words}{place}; "
    print_diagnostics(printable_line(f"{report}reproduce with: {shlex.join(command)}; {details}"))
