# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random kernels of floats, conversions and booleans: `python -m tests.emit.fuzz_floats --count 1000 --seed 0`.

Their results are held to exact numbers: on the simulator at every stage, on the CPU after LLVM's passes, and as the
PTX of several targets.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tilefold.compiler.pipeline import STAGE_NAMES
from tilefold.dialects.target import Target
from xdsl.dialects.builtin import ModuleOp

from tests.emit.cpu import run_kernel
from tests.emit.float_kernels import NARROW, Kernel, stored
from tests.emit.float_programs import generate
from tests.emit.numbers import FORMATS, decoded
from tests.emit.ptx_interpreter import run_ptx
from tests.passes.harness import execute, source_of
from tilefold.lowering import load

Arrays = dict[str, NDArray[Any]]
Run = Callable[[Arrays], None]


def check(kernel: Kernel, kept: list[str], what: str, run: Run) -> int:
    """Runs a kernel in some way and compares what it stores. How many elements were compared.

    AssertionError where one differs: in value, in the sign of a zero, or where one alone is NaN.
    """
    values = {name: kernel.values[name] for name in (*kernel.inputs, *kept)}
    arrays = {f"{name}t"[1:]: stored(value, type) for name, (type, value) in values.items()}
    for name in kept:
        arrays[f"{name}t"[1:]].fill(0)
    run(arrays)
    for name in kept:
        type, want = kernel.values[name]
        got = arrays[f"{name}t"[1:]]
        if type in FORMATS:
            got = decoded(got.view(f"u{got.itemsize}"), type)
            same = (got == want) & (np.signbit(got) == np.signbit(want)) | np.isnan(got) & np.isnan(want)
        else:
            same = got == want
        wrong = np.flatnonzero(~same)
        given = {n: values[wrong[0]] for n, (_, values) in kernel.values.items()} if wrong.size else {}
        assert not wrong.size, (
            f"{what}: {name}, {type}: element {wrong[0]} is {got[wrong[0]]} instead of {want[wrong[0]]}; {given}"
        )
    return kernel.elements * len(kept)


def ways(kernel: Kernel, text: str) -> Iterator[tuple[str, str, Run]]:
    """Where a kernel runs, its stage or target there, and how."""
    targets = kernel.targets()
    lowered = load(source_of(text), targets[-3])
    for stage in STAGE_NAMES:
        yield "simulator", stage, partial(simulate, lowered.reached(stage), kernel)
    if not {type for type, _ in kernel.values.values()} & set(NARROW):  # whose conversions are inline assembly
        for arch in (targets[0], "sm_90a"):
            yield "CPU", arch, partial(_run_on_cpu, lowered.llvm(Target(arch)), Target(arch), kernel)
    for arch in targets:
        yield "PTX", arch, partial(interpret, lowered.ptx(Target(arch)), kernel)


def simulate(module: ModuleOp, kernel: Kernel, arrays: Arrays) -> None:
    """Runs a kernel on the simulator."""
    execute(module, arrays, grid=(kernel.blocks, 1, 1), threads=kernel.threads)


def _run_on_cpu(llvm_ir: str, target: Target, kernel: Kernel, arrays: Arrays) -> None:
    grid, block = (kernel.blocks, 1, 1), (kernel.threads, 1, 1)
    run_kernel(llvm_ir, "k", grid, block, list(arrays.values()), target=target)


def interpret(ptx: str, kernel: Kernel, arrays: Arrays) -> None:
    """Runs a kernel's PTX without a GPU."""
    run_ptx(ptx, kernel.blocks, kernel.threads, list(arrays.values()))


def check_everywhere(kernel: Kernel, kept: list[str]) -> Counter[str]:
    """Runs a kernel in every way; the number of elements compared in each. AssertionError, with the text, if wrong."""
    text = kernel.text(kept)
    compared: Counter[str] = Counter()
    try:
        for where, what, run in ways(kernel, text):
            compared[where] += check(kernel, kept, f"{where}, {what}", run)
    except Exception as error:
        raise AssertionError(f"{type(error).__name__}: {error}\n{text}") from error
    return compared


def main() -> int:
    """Runs as many kernels as asked and prints what failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    compared: Counter[str] = Counter()
    failed = 0
    for seed in range(args.seed, args.seed + args.count):
        try:
            compared += check_everywhere(*generate(seed))
        except AssertionError as error:
            failed += 1
            print(f"--- seed {seed}: {error}")
    print(f"{args.count} kernels, {failed} failed; elements compared: {dict(compared)}")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
