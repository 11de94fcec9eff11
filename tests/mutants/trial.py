# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One mutant in a process of its own: `python -m tests.mutants.trial tests NAME`, `... bisect NAME`, and, of the
emission, `... named NAME`, whether `tilefold bisect` says an instruction of the PTX that the mutant has changed.

The exit status says how it ended; the name `none` runs the same without a mutant, for the arguments that follow.
"""

import io
import re
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from difflib import SequenceMatcher
from enum import IntEnum

from tests.mutants.mutant import EMISSION, Mutant
from tests.mutants.planting import module_of, plant
from tests.mutants.table import MUTANTS
from tests.project.tree import ROOT


class Status(IntEnum):
    """How a trial ended."""

    CAUGHT = 10
    MISSED = 11
    BROKEN = 12
    NO_GPU = 13


def tests(files: tuple[str, ...]) -> Status:
    """Whether a test of the files fails. Nothing is shrunk: one failing example is enough."""
    import pytest

    options = ["-x", "-q", "-p", "no:cacheprovider", "--hypothesis-profile", "mutants", "--tb", "line", "-m", "not gpu"]
    options.append("--nightly")  # a sample may leave out the case that shows the mutant
    status = pytest.main([*options, *(str(ROOT / file) for file in files)])
    return {pytest.ExitCode.OK: Status.MISSED, pytest.ExitCode.TESTS_FAILED: Status.CAUGHT}.get(
        pytest.ExitCode(status), Status.BROKEN
    )


def said_by_bisect(arguments: tuple[str, ...]) -> tuple[int, str]:
    """The exit status of `tilefold bisect`, and its words."""
    from tilefold.commands.cli import main

    said = io.StringIO()
    program, *options = arguments
    with redirect_stdout(said), redirect_stderr(said):
        status = main(["bisect", str(ROOT / program), *options])
    print(said.getvalue())
    return status, said.getvalue()


def bisect(pass_name: str, arguments: tuple[str, ...]) -> Status:
    """Whether `tilefold bisect` names a pass."""
    from tilefold.runtime.cuda import is_available

    if "cuda" in arguments and not is_available():
        return Status.NO_GPU
    status, said = said_by_bisect(arguments)
    subject = "the emission of PTX" if pass_name == EMISSION else f"pass '{pass_name}"
    return Status.CAUGHT if status and subject in said else Status.MISSED


def ptx_of(arguments: tuple[str, ...]) -> str:
    """The PTX that `tilefold bisect` looks at."""
    from tilefold.compiler.emit import emit_llvm
    from tilefold.compiler.frontend.params import expand
    from tilefold.compiler.frontend.source import read_text
    from tilefold.compiler.machine.nvptx import compile_llvm

    from tilefold.driver.lowering import load

    program, *options = arguments
    arch = options[options.index("--target") + 1] if "--target" in options else None
    read = load(expand(read_text(str(ROOT / program)), str(ROOT / program), {}), arch)
    target = read.simulated_target("instr")
    return compile_llvm(emit_llvm(read.reached("instr", target), target), target)


def names(said: str, before: str, after: str) -> bool:
    """Whether words name a line of the PTX that a mutant has changed, or the name of an instruction that it lacks."""
    whole = before.rstrip().splitlines(), after.rstrip().splitlines()
    old, new = ([re.sub(r"%(\w*?)\d+", r"%\1", line) for line in text] for text in whole)
    if old == new:  # only registers differ
        old, new = whole
    changed, gone = set[int](), list[str]()
    for kind, i, j, k, m in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind != "equal":
            changed |= set(range(k, m + 2))  # what has gone lies between two lines
            gone += old[i:j]
    lines = {int(number) for number in re.findall(r"line (\d+)", said)}
    lost = [name for line in gone for name in re.findall(r"[a-z][\w.:]*\.[\w.:]+", line)]
    return bool(lines & changed) or any(name in said for name in lost)


def named(mutant: Mutant) -> Status:
    """Whether `tilefold bisect` names an instruction that the mutant has changed."""
    command = [sys.executable, "-m", "tests.mutants.trial", "ptx", "none", *mutant.bisect]
    before = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout
    plant(mutant)
    status, said = said_by_bisect(mutant.bisect)
    return Status.CAUGHT if status and names(said, before, ptx_of(mutant.bisect)) else Status.MISSED


def run(kind: str, mutant: Mutant | None, arguments: tuple[str, ...]) -> Status:
    """A trial of a mutant, or of none with other arguments."""
    if mutant is None and kind == "ptx":
        print(ptx_of(arguments))
        return Status.MISSED
    if mutant is None:
        return tests(arguments) if kind == "tests" else bisect("", arguments)
    if kind == "named":
        return named(mutant)
    plant(mutant)
    status = tests(mutant.tests) if kind == "tests" else bisect(mutant.pass_name, mutant.bisect)
    return status if status is Status.NO_GPU or module_of(mutant) in sys.modules else Status.BROKEN


if __name__ == "__main__":
    kind, name, *arguments = sys.argv[1:]
    sys.exit(run(kind, None if name == "none" else MUTANTS[name], tuple(arguments)))
