# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sums of products that are rounded once: in kernels that contract, and in what functions with `fastmath` are given."""

from collections import Counter
from typing import Any

import numpy as np
import pytest

from tilefold import cute

N = 64
OPS = ("mul.rn.f32", "add.rn.f32", "sub.rn.f32", "fma.rn.f32")


def _counts(kernel: Any) -> Counter[str]:
    words = kernel.ptx("sm_80").split()
    return Counter({op: words.count(op) for op in OPS if op in words})


def _inputs() -> list[Any]:
    rng = np.random.default_rng(0)
    return [rng.standard_normal(N).astype(np.float32) for _ in range(3)]


def _fused(a: Any, b: Any, c: Any) -> Any:
    return (a.astype(np.float64) * b + c).astype(np.float32)  # a product of f32 is exact in f64


def _sum(a: Any, b: Any, c: Any) -> Any:
    return a * b + c


def _sum_from_the_left(a: Any, b: Any, c: Any) -> Any:
    return c + a * b


def _difference(a: Any, b: Any, c: Any) -> Any:
    return a * b - c


def _difference_from_the_left(a: Any, b: Any, c: Any) -> Any:
    return c - a * b


FORMS = {_sum: (1, 1), _sum_from_the_left: (1, 1), _difference: (1, -1), _difference_from_the_left: (-1, 1)}
"""The signs of product and summand."""


def _combine(A: cute.Tensor, B: cute.Tensor, C: cute.Tensor, D: cute.Tensor, form: cute.Constexpr[Any]) -> None:
    t, _, _ = cute.arch.thread_idx()
    D[t] = form(A[t], B[t], C[t])


def _combine_fragments(
    A: cute.Tensor, B: cute.Tensor, C: cute.Tensor, D: cute.Tensor, form: cute.Constexpr[Any]
) -> None:
    t, _, _ = cute.arch.thread_idx()
    a, b, c, d = (cute.local_tile(x, (2,), (t,)) for x in (A, B, C, D))
    d.store(form(a.load(), b.load(), c.load()))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("function", "threads"), [(_combine, N), (_combine_fragments, N // 2)])
def test_a_kernel_that_contracts_rounds_once(function: Any, threads: int, form: Any) -> None:
    a, b, c = _inputs()
    of_product, of_summand = FORMS[form]
    d = np.zeros_like(a)
    each = N // threads
    contracting = cute.kernel(contract=True)(function)
    contracting(a, b, c, d, form).launch(grid=1, block=threads, device="sim")
    assert np.array_equal(d, _fused(of_product * a, b, of_summand * c))
    assert _counts(contracting) == {"fma.rn.f32": each}
    plain = cute.kernel(function)
    plain(a, b, c, d, form).launch(grid=1, block=threads, device="sim")
    assert np.array_equal(d, form(a, b, c))
    assert _counts(plain)["mul.rn.f32"] == each
    assert not _counts(plain)["fma.rn.f32"]


@cute.kernel
def power(A: cute.Tensor, B: cute.Tensor, scale: cute.Float32, D: cute.Tensor, fast: cute.Constexpr[bool]) -> None:
    t, _, _ = cute.arch.thread_idx()
    a, b, d = (cute.local_tile(x, (2,), (t,)) for x in (A, B, D))
    d.store(cute.math.exp2(a.load() * scale - b.load() * scale, fastmath=fast))


def test_fastmath_contracts_what_a_function_is_given() -> None:
    a, b, _ = _inputs()
    d = np.zeros_like(a)
    scale = np.float32(0.7)
    power(a, b, 0.7, d, True).launch(grid=1, block=N // 2, device="sim")
    assert _counts(power) == {"mul.rn.f32": 2, "fma.rn.f32": 2}
    assert np.allclose(d, np.exp2(_fused(a, scale, -(b * scale)).astype(np.float64)), rtol=1e-6)
    power(a, b, 0.7, d, False).launch(grid=1, block=N // 2, device="sim")
    assert _counts(power) == {"mul.rn.f32": 4, "sub.rn.f32": 2}


def test_a_product_of_another_block_stays() -> None:
    @cute.kernel(contract=True)
    def kernel(A: cute.Tensor, D: cute.Tensor, n: cute.Int32) -> None:
        t, _, _ = cute.arch.thread_idx()
        product = A[t] * 3.0
        if t < n:
            D[t] = product + 1.0

    a, _, _ = _inputs()
    d = np.zeros_like(a)
    kernel(a, d, N).launch(grid=1, block=N, device="sim")
    assert np.array_equal(d, a * np.float32(3) + np.float32(1))
    assert _counts(kernel) == {"mul.rn.f32": 1, "add.rn.f32": 1}
