# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arguments of any kind in calls of the whole vocabulary: `python -m tests.python.misuse --count 10000`.

Each expression works, or is an error with a code at the user's line. What is not so is printed, and makes the exit
status 1.
"""

import argparse
import inspect
import linecache
import random
import sys
import traceback
import warnings
from collections.abc import Sequence
from enum import EnumMeta
from pathlib import Path
from types import CodeType
from typing import Any

import numpy as np
from tilefold.base.errors import TilefoldError

from tilefold import cute

GIVEN = (
    "A", "n", "r", "x", "mma", "s", "c", "atom", "copy", "thr", "L", "sw", "f", "b", "None", "'a'", "3", "-1",
    "(1,2)", "(1,'a')", "()", "[]", "{}", "1.5", "cute", "cute.Float32", "object()", "np.zeros(3)", "(None,1)",
    "A.iterator", "10**30", "True", "cute.ReductionOp.ADD", "float('nan')", "((1,2),(3,(4,)))",
)  # fmt: skip
"""What calls are given, of names in `build`."""

LAUNCHES = {"autotune", "jit", "kernel", "torch_op", "save_picture", "Kernel"}
"""What launches, or works on the host: not a part of kernels."""

FORMS = (
    "({0}) + ({1})", "({0}) @ ({1})", "({0}) < ({1})", "({0}) << ({1})", "({0})[{1}]", "({0})({1})", "({0})[{1}, 0]",
    "len({0})", "-({0})", "~({0})", "abs({0})", "[*({0})]", "max({0}, {1})", "({0}).shape", "({0}).load()",
    "({0}).store({1})", "({0}).iterator + ({1})", "({0}).get_slice({1})", "({0}).partition_S({1})", "({0}).reduce({1})",
    "({0}) == ({1})", "({0}) in ({1})", "bool({0})", "round({0})", "sum({0})", "x.sum({0})", "x.max(axis={0})",
)  # fmt: skip
"""Expressions of two things, beside calls."""


def _takes_arguments(thing: Any) -> bool:
    """Whether a call of it is ours to judge: not that of an enumeration, by which Python would extend it."""
    return callable(thing) and not isinstance(thing, EnumMeta)


def expressions(seed: int, count: int) -> list[str]:
    """Calls and operators on things chosen at random, the same for a seed."""
    chance = random.Random(seed)
    offered = [each for each in cute.__all__ if each not in LAUNCHES and getattr(cute, each) is not Any]
    names = [f"cute.{each}" for each in offered if _takes_arguments(getattr(cute, each))]
    names += [f"cute.arch.{each}" for each in cute.arch.__all__ if _takes_arguments(getattr(cute.arch, each))]
    names += [f"cute.nvgpu.{each}" for each in cute.nvgpu.__all__ if _takes_arguments(getattr(cute.nvgpu, each))]
    found: list[str] = []
    for _ in range(count):
        if chance.random() < 0.4:
            found.append(chance.choice(FORMS).format(chance.choice(GIVEN), chance.choice(GIVEN)))
            continue
        name = chance.choice(names)
        try:
            most = len(inspect.signature(eval(name)).parameters)
        except ValueError:  # what is made in C
            most = 2
        given = [chance.choice(GIVEN) for _ in range(chance.randint(min(1, most), most))]
        found.append(f"{name}({', '.join(given)})")
    return found


def compiled(expression: str) -> CodeType:
    """An expression as the whole of a file `user.py`, whose lines Python knows."""
    linecache.cache["user.py"] = (len(expression), None, [expression], "user.py")
    return compile(expression, "user.py", "eval")


def build(expression: str) -> None:
    """Builds a kernel that evaluates an expression, in a file `user.py`."""

    @cute.kernel(preprocessor=False)
    def mistaken(A: cute.Tensor, n: cute.Int32):
        atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), cute.Float32)
        copy = cute.make_tiled_copy_tv(atom, cute.make_layout((4, 8)), cute.make_layout((1, 4)))
        r = cute.make_rmem_tensor((4, 8), cute.Float32)
        r.fill(0.0)
        names = {
            "np": np, "cute": cute, "A": A, "n": n, "r": r, "x": r.load(), "f": cute.Float32(n), "b": n > 1,
            "s": cute.make_smem_tensor(cute.make_layout((16, 64)), cute.Float32), "atom": atom, "copy": copy,
            "c": cute.make_identity_tensor((16, 64)), "thr": copy.get_slice(0), "L": cute.make_layout((4, 8)),
            "sw": cute.make_swizzle(3, 0, 3), "mma": cute.make_tiled_mma("UniversalFMA<float>"), "__name__": "user",
        }  # fmt: skip
        eval(compiled(expression), names)

    mistaken(np.zeros((16, 64), np.float32), 3).build(32)


OURS = ("'Tensor", "'Vec", "'Int", "'Float", "'Bool", "'Layout", "'Tiled", "'Pointer")
"""How Python names things of ours in its messages."""


def complaint(expression: str) -> str:
    """What is wrong with how an expression ends; empty where it works, or has an error with a code and a place."""
    try:
        build(expression)
    except TilefoldError as error:
        return "" if str(error).startswith(("user.py:1:", f"{__file__}:")) else f"{expression}: {error}"
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1].filename
        if where != "user.py" or any(name in str(error) for name in OURS):
            return f"{expression}: {error!r} in {Path(where).name}"
    return ""


def main(arguments: Sequence[str] | None = None) -> int:
    """Tries expressions; 1 where one ended wrongly."""
    parser = argparse.ArgumentParser(prog="python -m tests.python.misuse", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--count", type=int, default=1000, help="how many expressions (default: 1000)")
    parser.add_argument("--seed", type=int, default=0, help="where the random numbers begin (default: 0)")
    options = parser.parse_args(arguments)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of Python, about calls of what is no function
        found = [each for each in map(complaint, expressions(options.seed, options.count)) if each]
    print("\n".join([*found, f"{options.count} expressions, {len(found)} ended wrongly"]))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
