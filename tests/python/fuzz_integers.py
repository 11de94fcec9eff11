# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random functions on integers, as kernels in Python: `python -m tests.python.fuzz_integers --count 1000 --seed 0`.

Each runs at every stage on the simulator, and what is emitted for it on the CPU; the results are Python's.
"""

import argparse
import linecache
import sys
from random import Random
from traceback import format_exc
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tilefold.compiler.builder import dtypes
from tilefold.compiler.source import plain_source
from tilefold.dialects.target import Target

from tests.emit.cpu import run_kernel
from tests.python.integers import generate
from tests.python.wrapping import INTEGERS, NAMES, TYPES, UndefinedError
from tilefold import cute
from tilefold.lowering import EXECUTABLE_STAGES, load

GRID, THREADS = 2, 5
# pyright: reportUnknownParameterType=false, reportMissingParameterType=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportInvalidTypeForm=false
# pyright: reportArgumentType=false


@cute.kernel
def call(function: cute.Constexpr, n, m, u, A8, A16, A32, A64, U8, U16, U32, U64, out):
    t, _, _ = cute.arch.thread_idx()
    b, _, _ = cute.arch.block_idx()
    elements = [tensor[t] for tensor in (A8, A16, A32, A64, U8, U16, U32, U64)]
    results = cute.jit(function)(t, b, n, m, u, *elements)
    for number in cute.range_constexpr(len(results)):
        out[b, t, number] = results[number]


def defined(text: str, seed: int, names: dict[str, Any]) -> Any:
    """The function of a text, whose source Python can find."""
    file = f"<integers {seed}>"
    linecache.cache[file] = (len(text), None, [f"{line}\n" for line in text.splitlines()], file)
    found: dict[str, Any] = {"__name__": "generated", **names}
    exec(compile(text, file, "exec"), found)
    return found["generated"]


def _arrays(random: Random) -> list[NDArray[Any]]:
    made: list[NDArray[Any]] = []
    for name in ("Int8", "Int16", "Int32", "Int64", "Uint8", "Uint16", "Uint32", "Uint64"):
        type = TYPES[name]
        greatest = type.least + (1 << type.bits) - 1
        edges = [0, 1, type.least, greatest, greatest - 1]
        numbers = [random.choice([*edges, *[type(random.getrandbits(64)).value] * 5]) for _ in range(THREADS)]
        made.append(np.array(numbers, name.lower()))
    return made


def attempt(seed: int) -> int | None:
    """Runs the function of a seed everywhere; how many elements were compared, None where it has no result.

    AssertionError where the results are not those of Python.
    """
    random, text = Random(seed), generate(seed)
    arrays = _arrays(random)
    scalars = [np.int32(random.getrandbits(31) - (1 << 30)), np.int64(random.getrandbits(62)), np.uint32(2**32 - 5)]
    of_python = defined(text, seed, dict(NAMES))
    rows: list[list[int]] = []
    try:
        for block in range(GRID):
            for thread in range(THREADS):
                values = (thread, block, *scalars, *(array[thread] for array in arrays))
                types = (
                    "Index",
                    "Index",
                    "Int32",
                    "Int64",
                    "Uint32",
                    *(each.dtype.name.capitalize() for each in arrays),
                )
                given = (TYPES[type](int(value)) for type, value in zip(types, values, strict=True))
                rows.append([result.value for result in of_python(*given)])
    except UndefinedError:
        return None
    expected = np.array(rows, np.int64).reshape(GRID, THREADS, -1)
    names = {each: getattr(dtypes, each) for each in (*INTEGERS, "Boolean")}
    names |= {"where": cute.where, "minimum": cute.minimum, "maximum": cute.maximum}
    function = defined(text, seed, names)
    for stage in EXECUTABLE_STAGES:
        out = np.zeros(expected.shape, np.int64)
        made = call(function, *scalars, *arrays, out)
        made.launch(grid=GRID, block=THREADS, device="sim", stage=stage)
        _compare(f"at stage {stage}", out, expected, text)
    out = np.zeros(expected.shape, np.int64)
    llvm = load(plain_source(call.to_cute(), "kernel.cute")).llvm(Target("sm_80"))
    run_kernel(llvm, "call", (GRID, 1, 1), (THREADS, 1, 1), [*scalars, *arrays, out])
    _compare("on the CPU", out, expected, text)
    return expected.size


def _compare(where: str, out: NDArray[Any], expected: NDArray[Any], text: str) -> None:
    wrong = np.argwhere(out != expected)
    if wrong.size:
        place = tuple(wrong[0].tolist())
        raise AssertionError(f"{where}, result {place} is {out[place]} instead of {expected[place]}\n{text}")


def main() -> int:
    """Runs as many functions as asked and prints what failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    failed = undefined = elements = 0
    for seed in range(args.seed, args.seed + args.count):
        try:
            found = attempt(seed)
            undefined += found is None
            elements += found or 0
        except Exception:  # whatever is thrown is what this program looks for
            failed += 1
            print(f"--- seed {seed}: {format_exc()}")
    print(f"{args.count} functions, {undefined} without a result, {elements} elements, {failed} failed")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
