# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One mutant in a process of its own: `python -m tests.mutants.trial tests NAME` and `... bisect NAME`.

The exit status says how it ended; the name `none` runs the same without a mutant, for the arguments that follow.
"""

import io
import sys
from contextlib import redirect_stderr, redirect_stdout
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
    status = pytest.main([*options, *(str(ROOT / file) for file in files)])
    return {pytest.ExitCode.OK: Status.MISSED, pytest.ExitCode.TESTS_FAILED: Status.CAUGHT}.get(
        pytest.ExitCode(status), Status.BROKEN
    )


def bisect(pass_name: str, arguments: tuple[str, ...]) -> Status:
    """Whether `tilefold bisect` names a pass."""
    from tilefold.runtime.cuda import is_available

    from tilefold.commands.cli import main

    if "cuda" in arguments and not is_available():
        return Status.NO_GPU
    said = io.StringIO()
    program, *options = arguments
    with redirect_stdout(said), redirect_stderr(said):
        status = main(["bisect", str(ROOT / program), *options])
    print(said.getvalue())
    subject = "the emission of PTX" if pass_name == EMISSION else f"pass '{pass_name}"
    return Status.CAUGHT if status and subject in said.getvalue() else Status.MISSED


def run(kind: str, mutant: Mutant | None, arguments: tuple[str, ...]) -> Status:
    """A trial of a mutant, or of none with other arguments."""
    if mutant is None:
        return tests(arguments) if kind == "tests" else bisect("", arguments)
    plant(mutant)
    status = tests(mutant.tests) if kind == "tests" else bisect(mutant.pass_name, mutant.bisect)
    return status if status is Status.NO_GPU or module_of(mutant) in sys.modules else Status.BROKEN


if __name__ == "__main__":
    kind, name, *arguments = sys.argv[1:]
    sys.exit(run(kind, None if name == "none" else MUTANTS[name], tuple(arguments)))
