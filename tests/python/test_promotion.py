# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Integers are promoted as in C++, and floats are divided as in Python."""

import math
from typing import Any

import numpy as np
import pytest

from tilefold import cute

SMALL = {np.int8: cute.Int8, np.uint8: cute.Uint8, np.int16: cute.Int16, np.uint16: cute.Uint16}
COUNT = 16


@cute.kernel
def combine(A: cute.Tensor, B: cute.Tensor, Out: cute.Tensor, fragments: cute.Constexpr[bool]) -> None:
    t, _, _ = cute.arch.thread_idx()
    a, b = A[t], B[t]
    if fragments:
        a, b = (cute.local_tile(x, (1,), (t,)).load() for x in (A, B))
    results = (a + b, a - b, a * b, -a, ~b, a << 3, a >> 1, a & b, a | b, a ^ b, abs(a), a % 7, a // 7)
    for result in results:
        assert result.dtype == cute.Int32
    assert cute.math.max(a, b).dtype.width < 32
    for row, result in enumerate((*results, a < b)):
        if fragments:
            cute.local_tile(Out, (1, 1), (row, t)).store(cute.where(result, 1, 0) if row == 13 else result)
        else:
            Out[row, t] = result


@pytest.mark.parametrize("fragments", [False, True])
@pytest.mark.parametrize("other", SMALL)
@pytest.mark.parametrize("dtype", SMALL)
@pytest.mark.sampled(7)
def test_integers_of_less_than_32_bits_are_computed_with_as_int32(dtype: Any, other: Any, fragments: bool) -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.integers(np.iinfo(x).min, np.iinfo(x).max, COUNT, x, True) for x in (dtype, other))
    out = np.zeros((14, COUNT), np.int32)
    combine(a, b, out, fragments).launch(grid=1, block=COUNT, device="sim")
    x, y = a.astype(np.int32), b.astype(np.int32)
    wanted = [x + y, x - y, x * y, -x, ~y, x << 3, x >> 1, x & y, x | y, x ^ y, abs(x), x % 7, x // 7, x < y]
    assert out.tolist() == np.array(wanted).tolist()


@cute.kernel
def accumulate(A: cute.Tensor, Out: cute.Tensor, n: cute.Int32) -> None:
    t, _, _ = cute.arch.thread_idx()
    total = A[t]
    for _ in cute.range(n):
        total += A[t]
        total ^= 5
    Out[t] = total
    assert total.dtype == A.element_type


@pytest.mark.parametrize("dtype", SMALL)
def test_an_assignment_with_an_operator_keeps_the_type(dtype: Any) -> None:
    a, out = np.arange(COUNT).astype(dtype) * dtype(13), np.zeros(COUNT, np.int32)
    accumulate(a, out, 4).launch(grid=1, block=COUNT, device="sim")
    total = a.copy()
    for _ in range(4):
        total = (total + a) ^ dtype(5)
    assert out.tolist() == total.tolist()


@cute.kernel
def divide(X: cute.Tensor, Y: cute.Tensor, Out: cute.Tensor) -> None:
    t, _, _ = cute.arch.thread_idx()
    Out[0, t], Out[1, t] = X[t] // Y[t], X[t] % Y[t]


PAIRS = [
    (5.0, 0.1), (-5.0, 0.1), (5.0, -0.1), (7.3, 2.0), (-7.3, 2.0), (1.0, 3.0), (-1e-9, 1.0), (2.5, math.inf),
    (-2.5, math.inf), (0.0, 3.0), (1e6, 0.7), (-1e6, 0.7), (6.0, 3.0), (-6.0, 3.0), (3.0, -3.0), (0.3, 0.1),
]  # fmt: skip


SIGNED = [sign * x for x in (0.0, 0.5, 1.5, 3.0, math.inf) for sign in (1.0, -1.0)]


@pytest.mark.parametrize("stage", ["cute", "instr"])
@pytest.mark.parametrize("fragments", [False, True])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_zeros_have_the_sign_of_python(dtype: Any, fragments: bool, stage: str) -> None:
    """A remainder that of the divisor."""
    pairs = [(a, b) for a in SIGNED for b in SIGNED if math.isfinite(a) and b != 0]
    x, y = (np.array(column, dtype) for column in zip(*pairs, strict=True))
    out = np.zeros((2, len(pairs)), dtype)
    (divide_fragments if fragments else divide)(x, y, out).launch(grid=1, block=len(pairs), device="sim", stage=stage)
    for got, wanted in zip(out, ([a // b for a, b in pairs], [a % b for a, b in pairs]), strict=True):
        assert got.tolist() == wanted
        assert np.signbit(got).tolist() == np.signbit(wanted).tolist()


@cute.kernel
def divide_fragments(X: cute.Tensor, Y: cute.Tensor, Out: cute.Tensor) -> None:
    t, _, _ = cute.arch.thread_idx()
    x, y = (cute.local_tile(tensor, (1,), (t,)).load() for tensor in (X, Y))
    for row, result in enumerate((x // y, x % y)):
        cute.local_tile(Out, (1, 1), (row, t)).store(result)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_remainders_of_floats_are_those_of_python(dtype: Any) -> None:
    x, y = (np.array(column, dtype) for column in zip(*PAIRS, strict=True))
    out = np.zeros((2, len(PAIRS)), dtype)
    divide(x, y, out).launch(grid=1, block=len(PAIRS), device="sim")
    assert out[1].tolist() == [dtype(float(a) % float(b)).item() for a, b in zip(x, y, strict=True)]
    assert out[0].tolist() == [float(a) // float(b) for a, b in zip(x, y, strict=True)]


def test_a_float_divided_by_zero_has_no_remainder() -> None:
    out = np.zeros((2, 1), np.float32)
    divide(np.ones(1, np.float32), np.zeros(1, np.float32), out).launch(grid=1, block=1, device="sim")
    assert np.isnan(out[1, 0])
