# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Conditions that are checked when a program runs, and those that Python decides."""

import numpy as np
import pytest
from tilefold.base.errors import TilefoldError

from tilefold import cute
from tilefold.cute.testing import assert_


@cute.kernel
def checking(A: cute.Tensor, n: cute.Int32) -> None:
    t, _, _ = cute.arch.thread_idx()
    assert_(t < n, "t is beyond n")
    A[t] = A[t] + 1


@cute.jit
def checked(A: cute.Tensor, n: cute.Int32) -> None:
    assert_(n > 3, "n is small")
    checking(A, n).launch(grid=1, block=8)


def test_assertions_of_kernels_and_of_the_host() -> None:
    a = np.zeros(8, np.int32)
    made = cute.compile(checked, a, 8)
    made(a, 8)
    assert a.tolist() == [1] * 8
    with pytest.raises(TilefoldError, match=r"E3213.*thread \(5,0,0\): assertion failed: t is beyond n"):
        made(a, 5)
    with pytest.raises(TilefoldError, match=r"E3213.*test_conditions.py:\d+.*assertion failed: n is small"):
        made(a, 3)
    with pytest.raises(TilefoldError, match="E3213: assertion failed: outside"):
        assert_(1 > 2, "outside")


def test_assertions_are_compiled_where_they_are_enabled(monkeypatch: pytest.MonkeyPatch) -> None:
    a = np.zeros(8, np.int32)
    for options, kept in (((), False), (cute.EnableAssertions, True), ("--enable-assertions", True)):
        assert ("__assertfail" in cute.compile(checked, a, 8, options=options).kernels[0].ptx()) is kept
    monkeypatch.setenv("TILEFOLD_ASSERTIONS", "1")
    assert "__assertfail" in cute.compile(checked, a, 8).kernels[0].ptx()
    assert "__assertfail" not in cute.compile[cute.EnableAssertions(False)](checked, a, 8).kernels[0].ptx()


def test_const_expr_takes_no_value_of_the_kernel() -> None:
    @cute.kernel
    def kernel(A: cute.Tensor, n: cute.Int32) -> None:
        if cute.const_expr(n > 3):
            A[0] = n

    with pytest.raises(TilefoldError, match=r"E5003.*(?s:.*)remove const_expr"):
        kernel(np.zeros(8, np.int32), 5).launch(grid=1, block=1, device="sim")


@cute.jit
def if_large(A: cute.Tensor, n: cute.Int32) -> None:
    if cute.const_expr(n > 3):
        checking(A, n).launch(grid=1, block=4)


def test_const_expr_takes_a_value_of_the_host() -> None:
    a = np.zeros(4, np.int32)
    made = cute.compile(if_large, a, 8)
    made(a, 8)
    made(a, 3)
    assert a.tolist() == [1] * 4
