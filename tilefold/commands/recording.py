# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`--repro DIR` of the command line: watches a command, and writes a folder that repeats it if it fails."""

import argparse
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from io import StringIO
from pathlib import Path
from traceback import format_exception
from typing import TextIO

from tilefold.base.errors import Code, TilefoldError
from tilefold.commands.launching import changes, run_options
from tilefold.commands.options import parse_pairs, read_source
from tilefold.compiler.frontend.source import read_text
from tilefold.compiler.pass_runner import InternalError
from tilefold.driver.filled_arguments import prepare
from tilefold.driver.lowering import load
from tilefold.driver.messages import print_diagnostics
from tilefold.runtime.cute_ir.host_engine import entry_point
from tilefold.tools.reproduction.folder import PROGRAM, Reproduction, Values

_REPLACED = frozenset({"--repro", "--arg", "--save", "-o", "--output", "--launch"})
"""The options that are not repeated: the folder has their files, and commands for each launch."""


def record(args: argparse.Namespace, execute: Callable[[argparse.Namespace], int]) -> int:
    """Executes a command, and writes the folder of `--repro` if it fails. TilefoldError (E4003) for the standard input
    as a program.
    """
    if args.file == "-":
        raise TilefoldError(Code.CLI_VALUE, "--repro: the program is on the standard input", "name a file")
    with _copied_output() as output:
        try:
            status = execute(args)
        except Exception as error:
            _write(args, output.getvalue() + "".join(format_exception(error)), _failed_input(error))
            raise
    if status:
        _write(args, output.getvalue(), {})
    else:
        print_diagnostics(f"note: nothing has failed, so {args.repro} is not written")
    return status


def _write(args: argparse.Namespace, output: str, passed_to: Mapping[str, str]) -> None:
    words = _command_line(args.words, args.file)
    Reproduction(read_text(args.file), words, _launches(args), output, passed_to).write(Path(args.repro))
    print_diagnostics(f"note: python {Path(args.repro) / 'repro.py'} repeats this")


def _failed_input(error: Exception) -> dict[str, str]:
    """The program that a pass was given which failed."""
    return {"before-the-pass.cute": error.program} if isinstance(error, InternalError) else {}


def _command_line(words: Sequence[str], file: str) -> list[str]:
    """The words of a command line, with the folder's program, and without the options that the folder replaces."""
    kept: list[str] = []
    rest = iter(words)
    for word in rest:
        if word.partition("=")[0] in _REPLACED:
            if "=" not in word:
                next(rest, None)
        else:
            kept.append(PROGRAM if word == file else word)
    return kept


def _launches(args: argparse.Namespace) -> list[Values]:
    """The launches of the program with their values; a command without any where they cannot be read."""
    try:
        program = load(read_source(args), args.target)
        if entry_point(program.module) is not None:
            return [Values()]
        return [
            Values(
                ("--launch", launch.label),
                {
                    name: filled.values
                    for name, filled in prepare(
                        launch, parse_pairs(args.arg, "--arg"), seed=args.seed, max_bytes=run_options(args).limits.bytes
                    ).filled.items()
                    if filled.initialised
                },
            )
            for launch in program.launches(changes(args))
        ]
    except TilefoldError:
        return [Values()]


class _Both(StringIO):
    """Passes text on, and keeps it."""

    def __init__(self, stream: TextIO, kept: StringIO) -> None:
        super().__init__()
        self._stream, self._kept = stream, kept

    def write(self, s: str) -> int:
        self._kept.write(s)
        return self._stream.write(s)

    def flush(self) -> None:
        self._stream.flush()

    def isatty(self) -> bool:
        return False


@contextmanager
def _copied_output() -> Generator[StringIO, None, None]:
    """Keeps the text that is printed meanwhile."""
    kept, streams = StringIO(), (sys.stdout, sys.stderr)
    sys.stdout, sys.stderr = (_Both(stream, kept) for stream in streams)
    try:
        yield kept
    finally:
        sys.stdout, sys.stderr = streams
