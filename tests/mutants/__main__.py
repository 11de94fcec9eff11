# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Plants every mutant, or those named: `python -m tests.mutants [NAME...]`. Exit status 1 if one survives.

First everything runs without a mutant: tests that fail anyway catch nothing.
"""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from tests.mutants.mutant import EMISSION, Mutant
from tests.mutants.table import MUTANTS
from tests.mutants.trial import Status
from tests.project.tree import ROOT

NOT_RUN = "not run, since there is no GPU"


@dataclass(frozen=True)
class Trial:
    """A run of tests or of `tilefold bisect`, with a mutant or without one."""

    kind: str
    arguments: tuple[str, ...]
    mutant: Mutant | None = None

    def run(self, seconds: float) -> tuple[str, str]:
        """A word for how it ended in that time, and its last lines."""
        name = () if self.mutant is None else (self.mutant.name,)
        command = [sys.executable, "-m", "tests.mutants.trial", self.kind, *(name or ("none", *self.arguments))]
        try:
            done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=seconds, check=False)
        except subprocess.TimeoutExpired:
            return f"TOO SLOW, {seconds:.0f} s", ""
        words = {
            int(Status.CAUGHT): "caught",
            int(Status.MISSED): "SURVIVED" if self.mutant else "passes",
            int(Status.NO_GPU): NOT_RUN,
        }
        return words.get(done.returncode, "BROKEN"), "\n".join((done.stdout + done.stderr).splitlines()[-12:])


def trials(mutants: Sequence[Mutant]) -> Iterator[Trial]:
    """The runs without mutants, then two or three for each mutant."""
    for kind, needed in (("tests", {m.tests for m in mutants}), ("bisect", {m.bisect for m in mutants})):
        yield from (Trial(kind, arguments) for arguments in sorted(needed) if arguments)
    for mutant in mutants:
        yield Trial("tests", mutant.tests, mutant)
        if mutant.bisect:
            yield Trial("bisect", mutant.bisect, mutant)
        if mutant.bisect and mutant.pass_name == EMISSION:
            yield Trial("named", mutant.bisect, mutant)


def main() -> int:
    """Plants the mutants of the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="mutants, or beginnings of their names (default: all)")
    parser.add_argument("--seconds", type=float, default=120, help="the limit of each run (default: 120)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="runs at a time (default: one for each CPU)")
    options = parser.parse_args()
    mutants = [m for m in MUTANTS.values() if not options.names or m.name.startswith(tuple(options.names))]
    if not mutants:
        parser.error("no mutant has such a name")
    wrong, without, started = 0, 0, time.monotonic()
    with ThreadPoolExecutor(options.jobs) as pool:
        planned = list(trials(mutants))
        limits = [float(options.seconds)] * len(planned)
        for trial, (word, said) in zip(planned, pool.map(Trial.run, planned, limits), strict=True):
            right = word in ("caught" if trial.mutant else "passes", NOT_RUN)
            wrong += not right
            without += word == NOT_RUN
            subject = trial.mutant.name if trial.mutant else "no mutant"
            print(f"{subject}: {trial.kind}: {word}" + ("" if trial.mutant else f" ({' '.join(trial.arguments)})"))
            print("" if right else f"{said}\n", end="", flush=True)
    runs = f"{len(planned)} runs, of which {without} lack a GPU" if without else f"{len(planned)} runs"
    print(f"{len(mutants)} mutants, {runs}, {time.monotonic() - started:.0f} s, {wrong} not as they ought")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
