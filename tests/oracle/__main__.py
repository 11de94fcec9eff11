# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`python -m tests.oracle DIR [--op NAME] [--failures N]`: runs every recorded case in the JSON files of a
folder.

Prints how many cases passed for each operation, and exits with 1 unless all did. An operation that this
runner does not know counts as failed.
"""

import argparse
import sys
from pathlib import Path

from .judge import Verdict, judge
from .record import load


def main(argv: list[str]) -> int:
    """Runs the cases and prints the table; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.oracle", description=__doc__.splitlines()[0] if __doc__ else ""
    )
    parser.add_argument("dir", type=Path, help="a folder of JSON files")
    parser.add_argument("--op", help="run this operation only")
    parser.add_argument("--failures", type=int, default=5, help="how many failures of an operation to print")
    options = parser.parse_args(argv)
    files = sorted(options.dir.glob("*.json"))
    if not files:
        print(f"no JSON files in {options.dir}", file=sys.stderr)
        return 2
    total = failed = relaxed = 0
    for file in files:
        verdicts: dict[str, list[Verdict]] = {}
        for case in load(file):
            if options.op in (None, case.op):
                verdicts.setdefault(case.op, []).append(judge(case))
        for op, results in verdicts.items():
            bad = [v for v in results if not v.passed]
            size1 = sum(v.size_one_strides for v in results)
            total, failed, relaxed = total + len(results), failed + len(bad), relaxed + size1
            note = f", {size1} but for strides of size-1 modes" if size1 else ""
            print(f"{file.name:28} {op:34} {len(results) - len(bad):5} passed {len(bad):4} failed{note}")
            for verdict in bad[: options.failures]:
                print(f"    {verdict.case_id}: {verdict.message}")
    print(f"{total - failed} passed, {failed} failed, of {total}; {relaxed} but for strides of size-1 modes")
    return 1 if failed or not total else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
