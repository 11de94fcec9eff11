# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`python -m tests.programs.public DIR`: runs CuTe programs of public repositories as they are, at small sizes.

`public.json` lists them by repository and commit, with the arguments and sizes that fit the simulator. DIR has a
checkout of each repository at its commit, `DIR/OWNER+NAME-COMMIT`; those that are missing are reported. A program
either `runs`, or is `known` to end with the text `ends` for the reason in the table: a fault of its own, or something
that tilefold refuses. Needs torch, and what the programs import. Prints a line for each, with `--json FILE` writes
them, and exits with 1 if one ends otherwise.
"""

import json
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .__main__ import execute
from .command_line import finish, parser_of
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
    def text(self) -> str:
        """Its place and its size."""
        sizes = [self.program.arguments, *(f"({new})" for _, new in self.program.sizes)]
        return " ".join([f"{self.repository}@{self.commit} {self.program.path}", *filter(None, sizes)])


def programs() -> Iterator[Public]:
    """The programs of the table."""
    for entry in json.loads(TABLE.read_text(encoding="utf-8")):
        for given in entry["programs"]:
            fields: dict[str, Any] = {**given, "writes_to": tuple(given.get("writes_to", ()))}
            fields["sizes"] = tuple((old, new) for old, new in given.get("sizes", ()))
            yield Public(entry["repository"], entry["commit"], Program(**fields, anywhere=True))


def main(argv: list[str]) -> int:
    """Runs the programs and prints how they end; returns the exit status."""
    options = parser_of("tests.programs.public", "the folder of the checkouts", "program", 600).parse_args(argv)
    results: list[dict[str, str]] = []
    for public in programs():
        if options.only not in public.text:
            continue
        began, folder = time.monotonic(), options.folder / public.checkout
        if (folder / public.program.path).is_file():
            state, reason = execute(public.program, folder, on_gpu=False, seconds=options.seconds)
        else:
            state, reason = "missing", f"there is no {folder / public.program.path}"
        results.append({"program": public.text, "state": state, "reason": reason})
        print(f"{state:8}{time.monotonic() - began:6.1f} s  {public.text}", flush=True)
        if reason:
            print(f"          {reason}", flush=True)
    return finish(results, Counter(result["state"] for result in results), options.json, {"runs", "known"})


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
