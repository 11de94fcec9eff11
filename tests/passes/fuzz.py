# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Executes random kernels at every stage on the simulator: `python -m tests.passes.fuzz --count 1000 --seed 0`."""

import argparse
import sys
from collections import Counter

import numpy as np
from tilefold.compiler.diagnostics import ProgramError
from tilefold.compiler.pipeline import STAGE_NAMES
from tilefold.dialects.target import Target

from tests.passes.costs import accesses, compare
from tests.passes.generate import Problem, generate
from tests.passes.harness import execute, source_of
from tilefold.lowering import load

REFUSALS = frozenset({"E0203", "E0204", "E0211", "E0214", "E0301", "E0303", "E0306", "E0311", "E0312"})
"""What a random kernel may be refused for: layouts that do not divide, atoms that do not fit. Nothing else."""


def attempt(seed: int, problem: Problem) -> str | None:
    """Runs a kernel at every stage. The code of its refusal, or None.

    AssertionError where a stage computes something else, the compiler refuses what it should not, or accesses cost
    something else than was said before the run.
    """
    try:
        program = load(source_of(problem.text))
        modules = {stage: program.reached(stage) for stage in STAGE_NAMES}
        program.llvm(Target("sm_80"))
    except ProgramError as error:
        if error.code not in REFUSALS:
            raise AssertionError(f"seed {seed}: {error}\n{problem.text}") from error
        return error.code
    for stage, module in modules.items():
        b = problem.unwritten
        arguments = {"A": problem.a.copy(), "B": b}
        ran = execute(module, arguments, grid=problem.grid, threads=problem.threads, outputs=["B"])
        wrong = np.flatnonzero(b != problem.expected)
        assert not wrong.size, (
            f"seed {seed}: at stage {stage}, {wrong.size} elements of B's storage differ, first {wrong[0]}: "
            f"{b[wrong[0]]} instead of {problem.expected[wrong[0]]}\n{problem.text}"
        )
        if stage == "instr":
            try:
                compare(accesses(module, "k"), ran.counters)
            except AssertionError as error:
                raise AssertionError(f"seed {seed}: costs: {error}\n{problem.text}") from error
    return None


def main() -> int:
    """Runs as many kernels as asked and prints what failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    refused: Counter[str] = Counter()
    failed = 0
    for seed in range(args.seed, args.seed + args.count):
        try:
            code = attempt(seed, generate(seed))
        except Exception as error:  # whatever is thrown is what this program looks for
            failed += 1
            print(f"--- seed {seed}: {type(error).__name__}: {error}")
            continue
        if code is not None:
            refused[code] += 1
    print(f"{args.count} kernels, {failed} failed, refused: {dict(refused)}")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
