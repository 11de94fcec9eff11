# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A wrong rewrite of one line of the compiler, and who must notice it."""

from dataclasses import dataclass

EMISSION = "emission"
"""Stands for the pass where LLVM IR is written from stage `instr`."""


@dataclass(frozen=True)
class Mutant:
    """A change of the text of one file of the product, in which `old` occurs once.

    `tests` are the test files of the pass, one of which must fail. `bisect` are the arguments of `tilefold bisect`, a
    program first, by which it must name the pass, or the emission of PTX; empty where only a tensor of 2 GiB shows the
    rewrite, or where the simulator runs nothing before the pass or nothing after it.
    """

    name: str
    pass_name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]
    bisect: tuple[str, ...] = ()


def of(pass_name: str, file: str, *tests: str) -> "Place":
    """A file of a pass, for the mutants in it."""
    return Place(pass_name, file, tuple([f"tests/{test}.py" for test in tests]))


@dataclass(frozen=True)
class Place:
    """A file of the product that a pass runs, and the test files of that pass."""

    pass_name: str
    file: str
    tests: tuple[str, ...]

    def mutant(self, name: str, old: str, new: str, bisect: str = "") -> Mutant:
        """A mutant of this file; `bisect` are the arguments of the command, separated by blanks."""
        return Mutant(name, self.pass_name, self.file, old, new, self.tests, tuple(bisect.split()))
