# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Executes random integer programs at every stage on the simulator, and what is emitted for them on the CPU:
`python -m tests.passes.fuzz_integers --count 1000 --seed 0`.
"""

import argparse
import sys
from traceback import format_exc

import numpy as np
from tilefold.compiler.pipeline import STAGE_NAMES
from tilefold.dialects.target import Target

from tests.emit.cpu import run_kernel
from tests.passes.harness import execute, source_of
from tests.passes.integers import Problem, generate
from tilefold.lowering import load


def attempt(problem: Problem) -> None:
    """Runs a program everywhere. AssertionError where the results are not those of Python."""
    program = load(source_of(problem.text))
    for stage in STAGE_NAMES:
        out = np.zeros(problem.expected.size, np.int64)
        arguments = {**problem.arguments, "B": out}
        execute(program.reached(stage), arguments, grid=(problem.grid, 1, 1), threads=problem.threads, outputs=["B"])
        _compare(f"at stage {stage}", out, problem)
    out = np.zeros(problem.expected.size, np.int64)
    text = program.llvm(Target("sm_80"))
    run_kernel(text, "k", (problem.grid, 1, 1), (problem.threads, 1, 1), [*problem.arguments.values(), out])
    _compare("on the CPU", out, problem)


def _compare(where: str, out: np.ndarray, problem: Problem) -> None:
    wrong = np.argwhere(out.reshape(problem.expected.shape) != problem.expected)
    if wrong.size:
        thread, number = wrong[0].tolist()
        found, wanted = out.reshape(problem.expected.shape)[thread, number], problem.expected[thread, number]
        message = f"{where}, output {number} of thread {thread} is {found} instead of {wanted}"
        raise AssertionError(f"{message}\n{problem.text}\narguments: {dict(problem.arguments)}")


def main() -> int:
    """Runs as many programs as asked and prints what failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    failed = undefined = elements = 0
    for seed in range(args.seed, args.seed + args.count):
        problem = generate(seed)
        if problem is None:
            undefined += 1
            continue
        try:
            attempt(problem)
            elements += problem.expected.size
        except Exception:  # whatever is thrown is what this program looks for
            failed += 1
            print(f"--- seed {seed}: {format_exc()}")
    print(f"{args.count} programs, {undefined} without a result, {elements} elements, {failed} failed")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
