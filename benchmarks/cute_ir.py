# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The cost of the `cute` dialect on the public CuTe IR: `python -m benchmarks.cute_ir SUITE`.

SUITE is the folder `cutlass_compiler` of NVIDIA/cutlass, as for `make conformance`. The largest of its programs are
parsed, verified and taken through the three `cute` passes. An operation counts once, whether the program had it or a
pass made it.
"""

import argparse
import sys
import time
from pathlib import Path
from statistics import median

from tilefold.compiler.frontend.program import parse_program
from tilefold.compiler.frontend.source import plain_source
from tilefold.compiler.pass_runner import parse_passes, run_passes_quickly
from tilefold.compiler.pipeline import PASSES, make_context

from benchmarks.record import Figure, Record, add_options, circumstances, keep_record, this_machine

TARGET_US = 400.0
"""The most that an operation may take, in microseconds, on two cores."""
PIPELINE = "cute-fold-static,cute-expand-ops,cute-to-base"


def measure(suite: Path, count: int = 12, repeat: int = 5, commit: str = "") -> Record:
    """The figures of the `count` largest programs of the suite that are meant to be accepted."""
    files = sorted(suite.glob("test/Integration/**/*.mlir"), key=lambda file: -file.stat().st_size)[:count]
    figures = tuple(_figure(file, repeat) for file in files)
    facts = circumstances(this_machine(), python=sys.version.split()[0], commit=commit)
    return Record("public CuTe IR: parse, verify and three passes, per operation", facts, figures, "cute-ir")


def _figure(file: Path, repeat: int) -> Figure:
    source = plain_source(file.read_text(encoding="utf-8"), file.name)
    samples: list[float] = []
    operations = 0
    for _ in range(repeat + 1):  # the first run imports and fills caches
        context = make_context()
        began = time.perf_counter()
        module = parse_program(source, context)
        given = sum(1 for _ in module.walk())
        run_passes_quickly(context, module, parse_passes(PIPELINE, PASSES), source=source)
        operations = max(given, sum(1 for _ in module.walk()))
        samples.append((time.perf_counter() - began) * 1e6 / operations)
    return Figure(
        file.stem,
        median(samples[1:]),
        "us",
        target=TARGET_US,
        at_most=True,
        note=f"{operations} operations",
        samples=tuple(samples[1:]),
    )


def main() -> int:
    """Prints the figures and keeps them; 1 where one is over its target."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cute_ir", description=__doc__, allow_abbrev=False)
    parser.add_argument("suite", type=Path, help="the folder cutlass_compiler of NVIDIA/cutlass")
    add_options(parser)
    args = parser.parse_args()
    record = measure(args.suite, commit=args.commit)
    if not record.figures:
        parser.error(f"{args.suite} has no programs below test/Integration")
    keep_record(record, args.out)
    return 1 if any(figure.met is False for figure in record.figures) else 0


if __name__ == "__main__":
    raise SystemExit(main())
