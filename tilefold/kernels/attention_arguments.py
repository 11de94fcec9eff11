# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Heads as the functions of attention take them: refusals, and copies that kernels can read."""

from collections.abc import Sequence

from .arguments import Array, check_array, check_shape, contiguous, dtype_of, refuse, step_of

HALVES = ("float16", "bfloat16")


def check_heads(function: str, q: Array, k: Array, v: Array, dtypes: Sequence[str] = HALVES) -> None:
    """LaunchError (E3106) for heads of other elements or shapes."""
    for name, x in (("q", q), ("k", k), ("v", v)):
        check_array(function, name, x, dtypes, 4)
        if dtype_of(x) != dtype_of(q):
            refuse(function, f"q has elements of {dtype_of(q)}, {name} of {dtype_of(x)}", "convert one of them")
    check_shape(function, "v", v, k.shape)
    if q.shape[3] != k.shape[3] or not k.shape[2] or q.shape[2] % k.shape[2]:
        problem = f"q has the shape {tuple(q.shape)}, k {tuple(k.shape)}"
        refuse(function, problem, "D is the same, and the heads of k divide those of q")


def check_batches(q: Array, k: Array) -> None:
    """LaunchError (E3106) unless q and k have as many batches."""
    if k.shape[0] != q.shape[0]:
        refuse("attention", f"q has {q.shape[0]} batches, k {k.shape[0]}", "give q and k equal numbers of batches")


def check_depth(depth: int, depths: tuple[int, ...]) -> None:
    """LaunchError (E3106) for another D."""
    if depth not in depths:
        refuse("attention", f"D is {depth}", f"one of {', '.join(map(str, depths))}")


def readable(x: Array) -> Array:
    """An array whose last mode is contiguous and whose other strides are multiples of 16 bytes, maybe a copy."""
    unit = 16 // x.itemsize
    is_right = step_of(x, 3) == 1 and all(step_of(x, mode) % unit == 0 for mode in range(3) if x.shape[mode] > 1)
    return x if is_right else contiguous(x)
