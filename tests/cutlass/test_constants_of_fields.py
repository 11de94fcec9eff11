# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls of a compiled function: NamedTuples and their constants beside those of the compilation."""

from typing import Any, NamedTuple, cast

import numpy as np

from tilefold import cute


class Inner(NamedTuple):
    """A constant within another argument."""

    factor: cute.Constexpr[float] = 1.0


class Given(NamedTuple):
    """A tensor beside a constant."""

    out: Any
    adds: cute.Constexpr[bool] = False
    inner: Inner = Inner()


@cute.kernel
def write(out: cute.Tensor, adds: cute.Constexpr[bool], factor: cute.Constexpr[float]):
    t, _, _ = cute.arch.thread_idx()
    out[t] = factor * t + (out[t] if cute.const_expr(adds) else 0.0)


@cute.jit
def function(given: Given):
    write(given.out, given.adds, given.inner.factor).launch(grid=1, block=4)


def test_a_call_without_the_constants_has_those_of_the_compilation() -> None:
    out, nothing = np.ones(4, np.float32), cast("Any", None)
    compiled = cute.compile(function, Given(out, True, Inner(2.0)))
    compiled(Given(out, nothing, Inner(nothing)))
    np.testing.assert_array_equal(out, 1 + 2 * np.arange(4))
    compiled(Given(out, False, Inner(7.0)))
    np.testing.assert_array_equal(out, 1 + 4 * np.arange(4))
    assert len(compiled.kernels) == 1


def test_a_plain_tuple_stands_for_the_tuple_with_names_of_the_compilation() -> None:
    out = np.ones(4, np.float32)
    compiled = cute.compile(function, Given(out, True, Inner(2.0)))
    for _ in range(2):
        compiled((out, False, (7.0,)))
    np.testing.assert_array_equal(out, 1 + 4 * np.arange(4))
    assert len(compiled.kernels) == 1
