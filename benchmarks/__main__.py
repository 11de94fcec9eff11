# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`python -m benchmarks`: takes the project's figures, prints them, and keeps them in benchmarks/results."""

import argparse
import sys
from collections.abc import Sequence

from tilefold.base.errors import TilefoldError

from benchmarks import gpu
from benchmarks.gpu import FAMILIES, IN_PYTHON, LIBRARY
from benchmarks.record import add_options, keep_record, print_record
from tilefold.driver.messages import print_error

COMPILER = "compiler"
"""The measurements on the CPU: the compiler and the simulator."""


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
    parser.add_argument(
        "--only",
        type=_families,
        default=(*FAMILIES, COMPILER),
        metavar="FAMILIES",
        help=f"some of {', '.join((*FAMILIES, COMPILER))}, with commas between (default: all), or of"
        f" {', '.join(LIBRARY)}",
    )
    parser.add_argument("--repeat", type=int, default=30, metavar="N", help="runs of each contender (default: 30)")
    parser.add_argument("--warmup", type=int, default=5, metavar="N", help="runs before them (default: 5)")
    add_options(parser)
    parser.add_argument("--strict", action="store_true", help="fail where a target on the GPU is missed")
    args = parser.parse_args(arguments)
    if args.repeat < 1 or args.warmup < 0:
        parser.error("--repeat must be at least 1, --warmup at least 0")
    try:
        return _measure(args)
    except TilefoldError as error:
        print_error(error)
        return 1


def _families(text: str) -> tuple[str, ...]:
    chosen = tuple(text.split(","))
    if unknown := set(chosen) - {*FAMILIES, *LIBRARY, COMPILER}:
        raise argparse.ArgumentTypeError(f"there is no family {min(unknown)!r}")
    return chosen


def _measure(args: argparse.Namespace) -> int:
    families = tuple(name for name in (*FAMILIES, *LIBRARY) if name in args.only)
    if args.device == "auto":
        from tilefold.runtime.cuda import is_available

        if COMPILER in args.only:
            from benchmarks import compiler, interpreted

            figures = compiler.measure(commit=args.commit)
            keep_record(figures, args.out)
            keep_record(interpreted.measure({}, commit=args.commit), args.out)
        args.device = "cuda" if is_available() else "sim"
    if not families:
        return 0
    if args.device == "sim":
        from benchmarks.simulated import dry_run

        small = tuple(name for name in families if name not in IN_PYTHON)
        if small != families:
            names = ", ".join(name for name in families if name in IN_PYTHON)
            print(f"{names}: no small sizes here; `make demo` runs these kernels on the simulator", file=sys.stderr)
        if small:
            print_record(dry_run(small))
        return 0
    record, failed = gpu.measure(families, warmup=args.warmup, repeat=args.repeat, commit=args.commit)
    keep_record(record, args.out)
    for failure in failed:
        print(f"error: {failure}", file=sys.stderr)
    missed = [figure for figure in record.figures if figure.met is False]
    return 1 if failed or (args.strict and missed) else 0


if __name__ == "__main__":
    sys.exit(main())
