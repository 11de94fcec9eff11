# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`x += y`, and each of Python's operators of this kind, keeps the type of `x`, as C++'s do: in a row of statements, in
branches, in loops, and for elements and fragments alike.
"""

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tilefold.builder.scalars.dtypes import Index

from tilefold import cute

TYPES = {
    "Int8": np.int8, "Int32": np.int32, "Int64": np.int64, "Uint32": np.uint32, "Float16": np.float16,
    "Float32": np.float32,
}  # fmt: skip
NAMES = [*TYPES, "BFloat16", "Boolean", "Index"]
OPERATORS = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor", "lshift", "rshift")
A = np.array([7, 100, 33, 90], np.int32)
B = np.array([3, 2, 5, 1], np.int32)


def _applies(name: str, x: str, y: str) -> bool:
    """Bits are of integers and predicates; a predicate is not shifted; a power of integers is static."""
    are_floats = any("Float" in type for type in (x, y))
    if name == "pow":
        return are_floats
    is_shift = name in ("lshift", "rshift")
    return not (are_floats and (is_shift or name in ("and", "or", "xor"))) and not (is_shift and "Boolean" in (x, y))


def _functions(name: str) -> tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any]]:
    """An operator, and the one that assigns."""
    plain = f"{name}_" if name in ("and", "or") else name
    return getattr(operator, plain), getattr(operator, f"i{name}")


@pytest.mark.parametrize("y", NAMES)
@pytest.mark.parametrize("x", NAMES)
@pytest.mark.sampled(6)
def test_the_type_stays_and_the_result_is_converted(x: str, y: str) -> None:
    """To that of the operator without `=`, wherever it stands."""
    own, other = (Index if name == "Index" else getattr(cute, name) for name in (x, y))
    functions = [_functions(name) for name in OPERATORS if _applies(name, x, y)]
    out = np.zeros((len(functions), 5, 4), np.float64)

    @cute.kernel
    def kernel(A: cute.Tensor, B: cute.Tensor, Out: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        for row, (plain, function) in enumerate(functions):
            b = B[t].to(other)
            wanted = plain(A[t].to(own), b).to(own)
            straight = function(A[t].to(own), b)
            branch = A[t].to(own)
            if t < 4:
                branch = function(branch, b)
            either = A[t].to(own)
            if t < 2:  # noqa: SIM108
                either = function(either, b)
            else:
                either = function(either, b)
            loop = A[t].to(own)
            for _ in cute.range(t - t + 1):
                loop = function(loop, b)
            assert {value.dtype for value in (straight, branch, either, loop)} == {own}
            for place, value in enumerate((wanted, straight, branch, either, loop)):
                Out[row, place, t] = value.to(cute.Float64)

    kernel(A, B, out).launch(grid=1, block=4, device="sim")
    for row, (plain, _) in enumerate(functions):
        assert (np.nan_to_num(out[row]) == np.nan_to_num(out[row, 0])).all(), plain
    assert out.any()


@cute.kernel
def statements(A: cute.Tensor, B: cute.Tensor, Out: cute.Tensor, n: cute.Int32):
    t, _, _ = cute.arch.thread_idx()
    x = A[t]
    x += B[t]
    Out[0, t] = x
    if t < 2:
        x -= B[t]
    else:
        x *= B[t]
    Out[1, t] = x
    for _ in cute.range(n):
        x += B[t]
    Out[2, t] = x
    while x > 5:
        x //= B[t] + 1
    Out[3, t] = x
    x /= B[t]
    Out[4, t] = x
    assert x.dtype == A.element_type
    A[t] += B[t]
    fragment = cute.local_tile(A, (1,), (t,)).load()
    fragment += cute.local_tile(B, (1,), (t,)).load()
    assert fragment.dtype == A.element_type
    cute.local_tile(A, (1,), (t,)).store(fragment)


@pytest.mark.parametrize("y", TYPES)
@pytest.mark.parametrize("x", TYPES)
@pytest.mark.sampled(7)
def test_statements(x: str, y: str) -> None:
    """Against NumPy, where all numbers are exact in both types."""
    a, b = np.array([7, 10, 3, 9]).astype(TYPES[x]), np.array([3, 2, 5, 1]).astype(TYPES[y])
    out, given = np.zeros((5, 4), np.float64), a.copy()
    statements(given, b, out, 2).launch(grid=1, block=4, device="sim")
    p, q = (values.astype(np.float64) for values in (a, b))
    first = p + q
    second = np.where(np.arange(4) < 2, first - q, first * q)
    third = second + 2 * q
    fourth = third.copy()
    while (fourth > 5).any():
        fourth = np.where(fourth > 5, fourth // (q + 1), fourth)
    assert out[:4].tolist() == [first.tolist(), second.tolist(), third.tolist(), fourth.tolist()]
    quotient = fourth / q
    quotient = np.trunc(quotient) if np.issubdtype(TYPES[x], np.integer) else quotient
    assert np.allclose(out[4], quotient, rtol=1e-3)
    assert given.astype(np.float64).tolist() == (p + 2 * q).tolist()


@cute.kernel
def counts(A: cute.Tensor, Out: cute.Tensor):
    t, _, _ = cute.arch.thread_idx()
    total = 0
    total += A[t]
    assert total.dtype == cute.Int32
    Out[t] = total


def test_a_number_has_no_type_to_keep() -> None:
    out = np.zeros(4, np.int32)
    counts(A, out).launch(grid=1, block=4, device="sim")
    assert out.tolist() == A.tolist()
