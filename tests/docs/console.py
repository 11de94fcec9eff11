# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs the console sessions of a page: `$ command` lines, each followed by what it prints.

Commands run in this process, in the folder of the session. They are `tilefold ...`, `python FILE ...`, `cat FILE`,
`ls FOLDER` and `echo $?`, which prints the exit status of the command before it; a failing command must be followed by
that.

Scripts name their lines by the whole path, as Python does; the folder is shown as `/kernels`.

In expected output a line `...` stands for any number of lines, and `...` within a line for any characters.
Durations and addresses may differ.
"""

import io
import linecache
import os
import re
import runpy
import shlex
import sys
import traceback
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

from tilefold.commands.cli import main

SHOWN = "/kernels"
"""The folder of the session, as pages show it."""
_DURATION = re.compile(r"\b\d+(\.\d+)?(e[+-]?\d+)? (s|ms|us)\b")
_ADDRESS = re.compile(r"\b0x7f[0-9a-f]+\b")


@dataclass(frozen=True, slots=True)
class Command:
    """One command of a session and the output that the page shows for it."""

    text: str
    expected: str
    line: int


class SessionError(AssertionError):
    """A session that cannot run, or that does not print what the page shows."""


def commands(session: str, line: int) -> list[Command]:
    """The commands of a session whose first line is number `line` of the page."""
    found: list[Command] = []
    for number, text in enumerate(session.splitlines(), line):
        if text.startswith("$ "):
            found.append(Command(text[2:], "", number))
        elif found:
            last = found[-1]
            found[-1] = Command(last.text, f"{last.expected}{text}\n", last.line)
        else:
            raise SessionError(f"line {number}: a session begins with '$ command'")
    return found


def run(session: list[Command], folder: Path) -> Iterator[tuple[Command, str]]:
    """Each command with what it printed. SessionError for a failure that the page does not show."""
    status = 0
    for command, following in zip(session, [*session[1:], None], strict=True):
        printed, status = _execute(command, folder, status)
        shown = following is not None and following.text == "echo $?"
        if status and not shown:
            raise SessionError(f"line {command.line}: `{command.text}` ends with status {status}:\n{printed}")
        yield command, printed


def _execute(command: Command, folder: Path, status: int) -> tuple[str, int]:
    match shlex.split(command.text):
        case ["echo", "$?"]:
            return f"{status}\n", 0
        case ["cat", file]:
            return (folder / file).read_text(), 0
        case ["ls", name]:
            return "".join(f"{path.name}\n" for path in sorted((folder / name).iterdir())), 0
        case ["tilefold", *arguments]:
            return _captured(lambda: main(arguments), folder)
        case ["python", script, *arguments]:
            return _captured(lambda: _run_script(script, arguments), folder)
        case _:
            raise SessionError(f"line {command.line}: a session cannot run `{command.text}`")


def _captured(command: Callable[[], int], folder: Path) -> tuple[str, int]:
    """What a command prints in a folder, and its exit status."""
    stream = io.StringIO()
    with _inside(folder), redirect_stdout(stream), redirect_stderr(stream):
        try:
            status = command()
        except SystemExit as end:  # argparse, after --help and on a wrong command line
            status = end.code if isinstance(end.code, int) else 1
    return stream.getvalue().replace(str(folder.resolve()), SHOWN), status


def _run_script(script: str, arguments: list[str]) -> int:
    """A script of Python, as `python SCRIPT ARGUMENTS` runs it but in this process."""
    linecache.clearcache()  # a script of this name may have run in another folder
    before = sys.argv, sys.path
    sys.argv, sys.path = [script, *arguments], [str(Path(script).parent), *sys.path]
    try:
        runpy.run_path(str(Path(script).resolve()), run_name="__main__")  # the path by which Python knows a script
    except Exception:
        traceback.print_exc()
        return 1
    finally:
        sys.argv, sys.path = before
    return 0


@contextmanager
def _inside(folder: Path) -> Generator[None]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def matches(expected: str, printed: str) -> bool:
    """Whether what was printed is what is shown, up to `...`, durations, addresses and spaces at the ends of lines."""
    pattern: list[str] = []
    for line in _plain(expected):
        if line.strip() == "...":
            pattern.append(r"(?:.*\n)*?")
        else:
            pattern.append(".*?".join(re.escape(part) for part in line.split("...")) + "\n")
    return re.fullmatch("".join(pattern), "".join(f"{line}\n" for line in _plain(printed))) is not None


def _plain(text: str) -> list[str]:
    text = _ADDRESS.sub("<address>", _DURATION.sub("<time>", text))
    return [line.rstrip() for line in text.rstrip("\n").splitlines()]
