# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`tilefold check --replay REPORT`: the check of a report in JSON again, and the part of a report that says how."""

import argparse
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path, PurePath
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np

from tilefold.base.errors import Code, TilefoldError
from tilefold.commands.options import program_text
from tilefold.compiler.frontend.source import read_text
from tilefold.driver.faults import AS_GIVEN
from tilefold.driver.filled_arguments import read_array
from tilefold.driver.ptx_program import SUFFIXES, is_array_file
from tilefold.tools.reproduction.replay import Repeated, read_replay, replay_of

if TYPE_CHECKING:
    from tilefold.tools.checking.check import Examination

_WITH_VALUE = frozenset({"--format", "-o", "--output", "--replay", "--repro"})
_ALONE = frozenset({"--json"})
"""Options that a replay does not repeat: they concern the report."""


def replay_data(args: argparse.Namespace) -> dict[str, Any]:
    """The data that repeat the check of a command line."""
    options, files = _split(args.words[1:], args.file)
    arrays = {name: read_array(path) for name, path in files.items()}
    compiled = getattr(args, "compiled", "")
    is_ptx = PurePath(args.file).suffix in SUFFIXES
    check = Repeated(args.file, program_text(args), options, arrays, compiled, is_ptx)
    checks = [check]
    if as_written := getattr(args, "as_written", ""):
        checks.append(replace(check, compiled=as_written, options=[*options, "--nvrtc=-G"]))
    return replay_of(checks, seed=args.seed, resident=args.resident)


def _split(words: Sequence[str], file: str) -> tuple[list[str], dict[str, str]]:
    """The options of a command line that a replay repeats, and the files of its arrays by the arguments' names."""
    options: list[str] = []
    files: dict[str, str] = {}
    rest = iter(words)
    for word in rest:
        option, equals, value = word.partition("=")
        if option in _WITH_VALUE:
            if not equals:
                next(rest, None)
        elif option == "--arg":
            name, _, text = (value if equals else next(rest)).partition("=")
            if is_array_file(text) or PurePath(file).suffix not in SUFFIXES:
                files[name] = text
            else:
                options += ["--arg", f"{name}={text}"]
        elif word not in (file, *_ALONE):
            options.append(word)
    return options, files


Examine = Callable[[argparse.Namespace], "list[Examination]"]


def repeat(
    args: argparse.Namespace, parser: argparse.ArgumentParser, examine: Examine
) -> "tuple[list[Examination], dict[str, Any]]":
    """The checks of the report that `--replay` names, each examined as its command line says, and the data that repeat
    them. TilefoldError for a report that says nothing to repeat.
    """
    if args.file != "-":
        raise TilefoldError(Code.CLI_VALUE, "--replay has the program with it", f"leave out {args.file[:80]}")
    checks = read_replay(read_text(args.replay), args.replay)
    examined: list[Examination] = []
    seed, resident = 0, 1
    for check in checks:
        with _files(check) as words:
            again = parser.parse_args([*check.options, *words, "--", check.name])
            again.command, again.text = args.command, check.text
            again.compiled, again.is_ptx = check.compiled, check.is_ptx
            examined += [
                replace(one, input=check.input if one.input == AS_GIVEN else one.input) for one in examine(again)
            ]
            seed, resident = again.seed, again.resident
    return examined, replay_of(checks, seed=seed, resident=resident)


@contextmanager
def _files(check: Repeated) -> Generator[list[str]]:
    """Within it, the arrays of a check are files, which the options name."""
    with TemporaryDirectory() as folder:
        words: list[str] = []
        for number, (name, array) in enumerate(check.arrays.items()):
            path = Path(folder) / f"{number}.npy"
            np.save(path, array, allow_pickle=False)
            words += ["--arg", f"{name}={path}"]
        yield words
