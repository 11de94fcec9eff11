# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arguments of any kind in calls of the whole vocabulary: each works, or has an error with a code and a place."""

import inspect
import random
import traceback
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tilefold.layout.errors import TilefoldError

from tilefold import cute

GIVEN = (
    "A", "n", "r", "x", "mma", "s", "c", "atom", "copy", "thr", "L", "sw", "f", "b", "None", "'a'", "3", "-1",
    "(1,2)", "(1,'a')", "()", "[]", "{}", "1.5", "cute", "cute.Float32", "object()", "np.zeros(3)", "(None,1)",
    "A.iterator", "10**30", "True", "cute.ADD", "float('nan')", "((1,2),(3,(4,)))",
)  # fmt: skip
"""What calls are given, of names in `build`."""

LAUNCHES = {"autotune", "jit", "kernel", "torch_op", "capture", "save_picture", "Stream", "Event", "Graph", "Kernel"}
"""What launches, or works on the host: not a part of kernels."""

FORMS = (
    "({0}) + ({1})", "({0}) @ ({1})", "({0}) < ({1})", "({0}) << ({1})", "({0})[{1}]", "({0})({1})", "({0})[{1}, 0]",
    "len({0})", "-({0})", "~({0})", "abs({0})", "[*({0})]", "max({0}, {1})", "({0}).shape", "({0}).load()",
    "({0}).store({1})", "({0}).iterator + ({1})", "({0}).get_slice({1})", "({0}).partition_S({1})", "({0}).reduce({1})",
)  # fmt: skip
"""Expressions of two things, beside calls."""


def expressions(seed: int, count: int) -> list[str]:
    """Calls and operators on things chosen at random, the same for a seed."""
    chance = random.Random(seed)
    names = [f"cute.{each}" for each in cute.__all__ if callable(getattr(cute, each)) and each not in LAUNCHES]
    names += [f"cute.arch.{each}" for each in cute.arch.__all__ if callable(getattr(cute.arch, each))]
    names += [f"cute.nvgpu.{each}" for each in cute.nvgpu.__all__ if callable(getattr(cute.nvgpu, each))]
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


def build(expression: str) -> None:
    """Builds a kernel that evaluates an expression, in a file `user.py`."""

    @cute.kernel(rewrite=False)
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
        eval(compile(expression, "user.py", "eval"), names)

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


@pytest.mark.filterwarnings("ignore::SyntaxWarning")
@pytest.mark.parametrize("seed", range(4))
def test_no_argument_ends_in_an_error_of_python(seed: int) -> None:
    assert [found for each in expressions(seed, 150) if (found := complaint(each))] == []


def test_mistakes_of_the_host_have_codes() -> None:
    layout: Any = cute.make_layout((4, 8))
    for wrong, code in (
        (lambda: cute.stride(None), "E5002"),
        (lambda: cute.cosize(3), "E5002"),
        (lambda: cute.make_layout(np.zeros(3)), "E5002"),
        (lambda: cute.select((1, 2), object()), "E5002"),
        (lambda: cute.group_modes((1, 2), None, "a"), "E5002"),  # pyright: ignore[reportArgumentType]
        (lambda: cute.blocked_product(layout, (1, 2)), "E5002"),  # pyright: ignore[reportArgumentType]
        (lambda: layout["a"], "E0208"),
        (lambda: cute.Swizzle("a", 1, 2), "E0210"),  # pyright: ignore[reportArgumentType]
        (lambda: cute.if_(True, "a"), "E5002"),  # pyright: ignore[reportArgumentType]
        (lambda: cute.Int(3), "E5002"),  # pyright: ignore[reportArgumentType]
        (lambda: cute.absolute([]), "E5002"),
    ):
        with pytest.raises(TilefoldError) as caught:
            wrong()
        assert caught.value.code == code


def test_errors_of_the_user_stay_pythons() -> None:
    """What the user's own functions raise, also where ours call them, goes through."""

    def raises() -> Any:
        raise ValueError("mine")

    @cute.kernel(rewrite=False)
    def called(n: cute.Int32):
        cute.if_(n > 1, raises)

    @cute.kernel(rewrite=False)
    def of_numpy(n: cute.Int32):
        np.zeros("a")  # pyright: ignore[reportCallIssue, reportArgumentType]

    with pytest.raises(ValueError, match="mine"):
        called(1).build(1)
    with pytest.raises(TypeError):
        of_numpy(1).build(1)
