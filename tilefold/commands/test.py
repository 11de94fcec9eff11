# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`tilefold test`: checks every program of a folder, in parallel, and prints a line for each as pytest does."""

import argparse
import json
from collections import Counter
from dataclasses import asdict
from typing import TYPE_CHECKING

from tilefold.commands.options import add_target
from tilefold.driver.output import write_output

if TYPE_CHECKING:
    from tilefold.tools.suite.jobs import Outcome

_EPILOG = """\
Below a folder these are checked: each .cute file that has launches, by `tilefold check`, and each Python program that
imports tilefold or cutlass and has `if __name__ == "__main__":`, whose launches are checked as it runs. Each program
runs in a process of its own, on the simulator. A line reports each: PASSED (clean), FAILED (faults), INCOMPLETE (no
fault, but the check did not see everything), or ERROR (it was refused, or did not end). Programs in Python are
executed: test folders that you trust.

With --executor dask:ADDRESS or ray:ADDRESS the workers of a Dask or Ray cluster check, which must see the same files.
A job whose worker is lost is given to another one, twice.

examples:
  tilefold test examples
  tilefold test kernels -n 8 --stage all
  tilefold test kernels --executor dask:tcp://10.0.0.1:8786 --json -o report.json

exit status:
  0    every program is clean
  1    a program has faults, or was refused
  3    no faults, but a check is incomplete
"""
_WORDS = {"clean": "PASSED", "faults": "FAILED", "incomplete": "INCOMPLETE", "error": "ERROR"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the options of `test`."""
    parser.epilog = _EPILOG
    parser.add_argument("paths", metavar="PATH", nargs="*", default=["."], help="folders, or programs (default: .)")
    add_target(parser, None, "as tilefold check")
    parser.add_argument("--stage", metavar="STAGE", action="append", default=[], help="as of tilefold check")
    parser.add_argument("-n", "--workers", type=int, metavar="N", help="processes (default: one for each core)")
    parser.add_argument("--executor", metavar="WORKERS", help="check on other workers: dask:ADDRESS or ray:ADDRESS")
    parser.add_argument("--seconds", type=int, default=600, metavar="S", help="end a program after S seconds")
    parser.add_argument("--json", action="store_true", help="print the outcomes as JSON instead of lines")
    parser.add_argument("-o", "--output", metavar="OUT", help="write the report to this file")


def execute(args: argparse.Namespace) -> int:
    """Checks the programs; the exit status of the worst verdict."""
    from tilefold.driver.progress import progress
    from tilefold.tools.suite.farm import results, workers_at
    from tilefold.tools.suite.jobs import Job, Outcome, check, collect

    words = [word for stage in args.stage for word in ("--stage", stage)]
    words += ["--target", args.target] if args.target else []
    jobs = [Job(path, tuple(words), args.seconds) for path in collect(args.paths)]
    found_by_path: dict[str, Outcome] = {}
    with workers_at(args.executor, args.workers) as open_workers, progress("checking", len(jobs)) as advance:
        for job, found in results(check, jobs, open_workers):
            lost = f"worker lost: {found}"
            found_by_path[job.path] = found if isinstance(found, Outcome) else Outcome(job.path, "error", (lost,))
            advance()
    outcomes = [found_by_path[job.path] for job in jobs]  # they come in any order
    text = json.dumps([asdict(outcome) for outcome in outcomes], indent=2) if args.json else _text(outcomes)
    write_output(f"{text}\n", args.output)
    verdicts = {outcome.verdict for outcome in outcomes}
    return 1 if verdicts & {"faults", "error"} else 3 if "incomplete" in verdicts else 0


def _text(outcomes: "list[Outcome]") -> str:
    """A line for each program, the reasons of those that are not clean, and the counts."""
    width = max((len(outcome.path) for outcome in outcomes), default=0)
    lines = [f"{outcome.path:<{width}}  {_WORDS[outcome.verdict]}" for outcome in outcomes]
    for outcome in outcomes:
        lines += [f"{_WORDS[outcome.verdict]} {outcome.path}: {line}" for line in outcome.lines]
    counts = Counter(_WORDS[outcome.verdict].lower() for outcome in outcomes)
    said = ", ".join(f"{counts[word.lower()]} {word.lower()}" for word in _WORDS.values() if counts[word.lower()])
    return "\n".join([*lines, said or "no programs"])
