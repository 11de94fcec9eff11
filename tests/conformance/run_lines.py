# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""RUN lines of a lit test, and running their pipelines in process, with `tilefold` in place of the suite's tools."""

import contextlib
import io
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from filecheck.finput import FInput, InputRange
from filecheck.matcher import Matcher
from filecheck.options import parse_argv_options
from filecheck.parser import Parser
from tilefold.compiler.frontend.expectations import find_expectations
from tilefold.compiler.frontend.source import Source

from tilefold.commands.cli import main

_RUN = re.compile(r"^\s*(?://|#)\s*RUN:\s?(.*)$", re.MULTILINE)
_EXPECTED = re.compile(
    r"expected-(error|warning|note|remark)[ \t]*(?:@(?:[+-]\d+|above|below|unknown))?[ \t]*\{\{.*?\}\}"
)


class UnsupportedError(Exception):
    """A RUN line with a command or syntax that this runner does not know."""


@dataclass(frozen=True, slots=True)
class Result:
    """What a command left: its exit status, and what it wrote to the standard output and the standard error."""

    status: int
    output: str
    errors: str


def run_lines(text: str) -> list[str]:
    """The command lines of a test, continuation lines joined."""
    lines: list[str] = []
    going_on = False
    for match in _RUN.finditer(text):
        part = match[1].strip()
        if going_on:
            lines[-1] += " " + part.rstrip("\\")
        else:
            lines.append(part.rstrip("\\"))
        going_on = part.endswith("\\")
    return lines


def run_line(line: str, file: Path, scratch: Path, device: str = "sim") -> str:
    """Runs one command line of the test `file`; returns what failed, or nothing."""
    data = ""
    for command in line.split("|"):
        words = [word.replace("%s", str(file)).replace("%t", str(scratch / "t")) for word in shlex.split(command)]
        merge = "2>&1" in words
        words = [word for word in words if word != "2>&1"]
        negate = words[0] == "not"
        if negate:
            words = words[1:]
        result = _run(words, data, file, scratch, device)
        if (result.status != 0) != negate:
            return f"{' '.join(words)}: exit status {result.status}\n{result.errors}"
        data = result.output + result.errors if merge else result.output
    return ""


def _run(words: list[str], data: str, file: Path, scratch: Path, device: str) -> Result:
    environment: list[str] = []
    if words[0] == "env":
        words = words[1:]
        while "=" in words[0]:
            environment.append(words.pop(0))
    match words[0]:
        case "cute-opt" | "base-opt" | "cutlass-compiler-opt" | "cutlass-compiler":
            return opt(words[1:], data, file, scratch)
        case "%cutlass-compiler-run-host":
            return _run_program(words[1:], environment, "sim")
        case "%cutlass-compiler-run-device":
            return _run_program(words[1:], environment, device)
        case "FileCheck":
            return _filecheck(words, data)
        case _:
            raise UnsupportedError(f"command '{words[0]}'")


def by_line(text: str) -> str:
    """A test whose expected diagnostics have no words any more, and are one of a kind for each line.

    MLIR reports twice that types cannot be inferred; we say it once, in our own words.
    """
    seen: set[tuple[str, int | None]] = set()
    announced = iter(find_expectations(Source("", text, text)))
    lines = text.split("\n")
    for number, line in enumerate(lines):

        def relaxed(match: re.Match[str], number: int = number) -> str:
            target = next(announced).line
            if (match[1], target) in seen:
                return f"expects {match[1]} above"
            seen.add((match[1], target))
            return f"expected-{match[1]}@{'unknown' if target is None else f'{target - number - 1:+}'} {{{{}}}}"

        lines[number] = _EXPECTED.sub(relaxed, line)
    return "\n".join(lines)


def opt(arguments: list[str], data: str, file: Path, scratch: Path) -> Result:
    """Runs `tilefold opt`. Expected diagnostics count by their lines: our words may differ."""
    if any(argument.endswith("-verify-diagnostics") for argument in arguments):
        relaxed = scratch / file.name
        relaxed.write_text(by_line(file.read_text()))
        arguments = [str(relaxed) if argument == str(file) else argument for argument in arguments]
    return _tilefold(["opt", *arguments], data)


def _run_program(words: list[str], environment: list[str], device: str) -> Result:
    """Runs `tilefold run`; simulator and GPU have one form of machine code each, so that a compilation target is none.

    The environment that a test sets is what its program may read. What a GPU prints comes from the driver, so that it
    is caught from another process.
    """
    arguments: list[str] = []
    rest = iter(words)
    for word in rest:
        if word == "--compilation-target":
            next(rest)
        else:
            arguments.append({"-e": "--entry"}.get(word, word))
    allowed = [word for variable in environment for word in ("--allow-env", variable)]
    command = ["run", "--device", device, *allowed, *arguments]
    if device == "sim":
        return _tilefold(command, "")
    done = subprocess.run([sys.executable, "-m", "tilefold", *command], capture_output=True, text=True, check=False)
    return Result(done.returncode, done.stdout, done.stderr)


def _tilefold(arguments: list[str], data: str) -> Result:
    output, errors = io.StringIO(), io.StringIO()
    stdin = sys.stdin
    sys.stdin = io.TextIOWrapper(io.BytesIO(data.encode()), encoding="utf-8")
    try:
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
            try:
                status = main(arguments)
            except SystemExit as stop:  # argparse refuses an option
                status = stop.code if isinstance(stop.code, int) else 1
    finally:
        sys.stdin = stdin
    return Result(status, output.getvalue(), errors.getvalue())


class _Input(FInput):
    """What FileCheck reads. An excluded text ends before the next match, as in LLVM, and not in it."""

    matched: tuple[int, int] = (0, 0)

    def find(self, pattern: re.Pattern[str], this_line: bool = False) -> re.Match[str] | None:
        if found := super().find(pattern, this_line):
            self.matched = found.span()
        return found

    def find_between(self, pattern: re.Pattern[str], irange: InputRange) -> re.Match[str] | None:
        if type(irange) is InputRange and irange.end == self.matched[1]:
            irange = irange.restrict_end(self.matched[0])
        return super().find_between(pattern, irange)


def _filecheck(words: list[str], data: str) -> Result:
    errors = io.StringIO()
    with contextlib.redirect_stderr(errors), contextlib.redirect_stdout(errors):
        options = parse_argv_options(words)
        status = Matcher(options, _Input("<stdin>", data), Parser.from_opts(options)).run()
    return Result(status, "", errors.getvalue())
