# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`python -m benchmarks`: takes the project's figures, prints them, and keeps them in benchmarks/results."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from tilefold.layout.errors import TilefoldError

from benchmarks.record import RESULTS, print_record
from tilefold.report import print_error


def main(arguments: Sequence[str] | None = None) -> int:
    """Takes the figures that the options ask for; 1 where a result is wrong or, with --strict, a target is missed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__, allow_abbrev=False)
    parser.add_argument(
        "--device",
        choices=("auto", "cuda", "sim"),
        default="auto",
        help="cuda: kernels on the GPU against their peers; sim: the same kernels, small, on the simulator;"
        " auto: compiler and simulator, and cuda where there is a GPU, else sim (default)",
    )
    parser.add_argument("--repeat", type=int, default=30, metavar="N", help="runs of each contender (default: 30)")
    parser.add_argument("--warmup", type=int, default=5, metavar="N", help="runs before them (default: 5)")
    parser.add_argument("--out", type=Path, default=RESULTS, metavar="DIR", help="where results go")
    parser.add_argument("--commit", default="", help="the commit of the sources, where this is no git checkout")
    parser.add_argument("--strict", action="store_true", help="fail where a target on the GPU is missed")
    args = parser.parse_args(arguments)
    if args.repeat < 1 or args.warmup < 0:
        parser.error("--repeat must be at least 1, --warmup at least 0")
    try:
        return _measure(args)
    except TilefoldError as error:
        print_error(error)
        return 1


def _measure(args: argparse.Namespace) -> int:
    if args.device == "auto":
        from tilefold.runtime.cuda import is_available

        from benchmarks import compiler

        figures = compiler.measure(commit=args.commit)
        print_record(figures)
        print(f"kept in {figures.save(args.out)}")
        args.device = "cuda" if is_available() else "sim"
    if args.device == "sim":
        from benchmarks.simulated import dry_run

        print_record(dry_run())
        return 0
    from benchmarks import gpu

    record = gpu.measure(warmup=args.warmup, repeat=args.repeat, commit=args.commit)
    print_record(record)
    print(f"kept in {record.save(args.out)}")
    missed = [figure for figure in record.figures if figure.met is False]
    return 1 if args.strict and missed else 0


if __name__ == "__main__":
    sys.exit(main())
