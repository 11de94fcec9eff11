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
imports tilefold or cutlass and has `if __name__ == "__main__":`, and each such notebook, whose launches are checked as
it runs. Each program runs in a process of its own, on the simulator. A line reports each: PASSED (clean), FAILED
(faults), INCOMPLETE (no fault, but the check did not see everything), or ERROR (it was rejected, or did not end).
Programs in Python are executed: test folders that you trust.

Folders for code of others and for what is made are left out (third_party, vendor, build, venv and the like), and those
whose name begins with a dot; a path on the command line is taken as it is.

With --executor dask:ADDRESS or ray:ADDRESS the workers of a Dask or Ray cluster check, which must see the same files.
A job whose worker is lost is given to another one, twice.

examples:
  tilefold test examples
  tilefold test kernels -n 8 --stage all
  tilefold test kernels --fuzz 20 --seed 7
  tilefold test kernels -k gemm -x --junitxml report.xml
  tilefold test kernels --executor dask:tcp://10.0.0.1:8786 --json -o report.json

exit status:
  0    every program is clean
  1    a program has faults, or was rejected, or there is none
  3    no faults, but a check is incomplete
"""
_BAD = {"faults", "error"}
_WORDS = {"clean": "PASSED", "faults": "FAILED", "incomplete": "INCOMPLETE", "error": "ERROR"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the options of `test`."""
    parser.epilog = _EPILOG
    parser.add_argument("paths", metavar="PATH", nargs="*", default=["."], help="folders, or programs (default: .)")
    add_target(parser, None, "as tilefold check")
    parser.add_argument("--stage", metavar="STAGE", action="append", default=[], help="as of tilefold check")
    parser.add_argument("--fuzz", metavar="N", type=int, help="as of tilefold check, for .cute files")
    parser.add_argument("--seed", metavar="S", type=int, help="as of tilefold check: it chooses the arguments")
    parser.add_argument("-k", metavar="TEXT", help="only programs with this text in their path")
    parser.add_argument("-x", "--exitfirst", action="store_true", help="stop at the first fault or error")
    parser.add_argument("-n", "--workers", type=int, metavar="N", help="processes (default: one for each core)")
    parser.add_argument("--executor", metavar="WORKERS", help="check on other workers: dask:ADDRESS or ray:ADDRESS")
    parser.add_argument("--seconds", type=int, default=600, metavar="S", help="end a program after S seconds")
    parser.add_argument("--json", action="store_true", help="print the outcomes as JSON instead of lines")
    parser.add_argument("--junitxml", metavar="XML", help="also write the outcomes to this file, as pytest does")
    parser.add_argument("-o", "--output", metavar="OUT", help="write the report to this file")


def execute(args: argparse.Namespace) -> int:
    """Checks the programs; the exit status of the worst verdict."""
    from tilefold.driver.output import progress
    from tilefold.driver.workers import results
    from tilefold.tools.suite.jobs import Job, Outcome, check, collect, libraries, workers_at
    from tilefold.tools.suite.junit import junit_xml

    words = [word for stage in args.stage for word in ("--stage", stage)]
    given = {"--target": args.target, "--fuzz": args.fuzz, "--seed": args.seed}
    words += [word for option, value in given.items() if value is not None for word in (option, str(value))]
    paths = [path for path in collect(args.paths) if args.k is None or args.k in path]
    jobs = [Job(path, tuple(words), args.seconds) for path in paths]
    found_by_path: dict[str, Outcome] = {}
    width, shown = max((len(job.path) for job in jobs), default=0), 0
    is_live = not args.json and args.output is None
    with workers_at(args.executor, args.workers) as open_workers, progress("checking", len(jobs)) as advance:
        for number, found in results(check, jobs, open_workers):
            job, lost = jobs[number], f"worker lost: {found}"
            outcome = found if isinstance(found, Outcome) else Outcome(job.path, "error", (lost,))
            found_by_path[job.path] = outcome
            advance()
            while is_live and shown < len(jobs) and (next_one := found_by_path.get(jobs[shown].path)) is not None:
                write_output(f"{_row(next_one, width)}\n", None)
                shown += 1
            if args.exitfirst and outcome.verdict in _BAD:
                break
    outcomes = [found_by_path[job.path] for job in jobs if job.path in found_by_path]  # they come in any order
    rows = [_row(outcome, width) for outcome in outcomes if not is_live or outcome.path not in paths[:shown]]
    text = "\n".join([*rows, *_summary(outcomes)])
    if len(outcomes) < len(jobs):
        text += f"; {len(jobs) - len(outcomes)} not checked"
    if not jobs and (count := libraries(args.paths)):
        text += f': {count} files in Python have no `if __name__ == "__main__":`'
    if args.json:
        text = json.dumps([asdict(outcome) for outcome in outcomes], indent=2)
    if args.junitxml is not None:
        write_output(junit_xml(outcomes), args.junitxml)
    write_output(f"{text}\n", args.output)
    verdicts = {outcome.verdict for outcome in outcomes}
    return 1 if verdicts & _BAD or not jobs else 3 if "incomplete" in verdicts else 0


def _row(outcome: "Outcome", width: int) -> str:
    return f"{outcome.path:<{width}}  {_WORDS[outcome.verdict]}"


def _summary(outcomes: "list[Outcome]") -> list[str]:
    """The reasons of programs that are not clean, and the counts."""
    lines = [f"{_WORDS[each.verdict]} {each.path}: {line}" for each in outcomes for line in each.lines]
    counts = Counter(_WORDS[outcome.verdict].lower() for outcome in outcomes)
    said = [f"{counts[word]} {word}" for word in map(str.lower, _WORDS.values()) if counts[word]]
    return [*lines, ", ".join(said) + "s" * (counts["error"] > 1) or "no programs"]
