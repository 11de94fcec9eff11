# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`python -m tests.programs.public DIR`: runs CuTe programs of public repositories as they are, at small sizes.

`public.json` lists them by repository and commit, with the arguments and sizes that fit the simulator. DIR has a
checkout of each repository at its commit, `DIR/OWNER+NAME-COMMIT`; those that are missing are reported. A program
either `runs`, or is `known` to end with the text `ends` for the reason in the table: a fault of its own, or something
that tilefold refuses. Needs torch, and what the programs import. Prints a line for each, with `--json FILE` writes
them, and exits with 1 if one ends otherwise, also if it ends well (`changed`).
"""

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .__main__ import execute
from .command_line import Row, checkout_of, options_of, run_rows
from .table import Program

TABLE = Path(__file__).with_name("public.json")


@dataclass(frozen=True, slots=True)
class Public:
    """A program of a repository at a commit."""

    repository: str
    commit: str
    program: Program

    @property
    def checkout(self) -> str:
        """The name of the folder of the repository."""
        return f"{self.repository.replace('/', '+')}-{self.commit}"

    @property
    def size(self) -> str:
        """Its arguments, and the texts that stand for those of its file."""
        return " ".join(filter(None, [self.program.arguments, *(f"({new})" for _, new in self.program.sizes)]))

    @property
    def text(self) -> str:
        """Its place, what is called there, its size, and its target."""
        place = f"{self.repository}@{self.commit} {self.program.path}"
        place += f"::{self.program.call}" if self.program.call else ""
        return " ".join(filter(None, [place, self.size, self.program.target and f"({self.program.target})"]))


def programs() -> Iterator[Public]:
    """The programs of the table."""
    for entry in json.loads(TABLE.read_text(encoding="utf-8")):
        for given in entry["programs"]:
            fields: dict[str, Any] = {**given, "writes_to": tuple(given.get("writes_to", ()))}
            fields["sizes"] = tuple((old, new) for old, new in given.get("sizes", ()))
            yield Public(entry["repository"], entry["commit"], Program(**fields, anywhere=True))


def run(public: Public, folder: Path, seconds: int) -> tuple[str, str]:
    """Runs a program from the checkouts in a folder; how it went, and the reason."""
    checkout = folder / public.checkout
    if lacking := checkout_of(checkout, public.repository, public.commit, public.program.path):
        return "missing", lacking
    return execute(public.program, checkout, on_gpu=False, seconds=seconds)


def row_of(public: Public, folder: Path) -> Row:
    """A program of the table."""
    program = public.program
    facts = {"repository": public.repository, "commit": public.commit, "path": program.path, "call": program.call}
    facts |= {"size": public.size, "target": program.target}
    return Row(public.text, facts, lambda seconds: run(public, folder, seconds))


def main(argv: list[str]) -> int:
    """Runs the programs and prints how they end; returns the exit status."""
    options = options_of("tests.programs.public", "the folder of the checkouts", "program", 600, argv)
    return run_rows([row_of(public, options.folder) for public in programs()], options)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
