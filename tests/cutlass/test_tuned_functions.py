# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Host functions whose parameters are found by timing, `cute.testing.tune` and `autotune_jit`."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tilefold.runtime.errors import LaunchError

from tilefold import cute
from tilefold.cute import testing


@cute.kernel
def kernel(A: cute.Tensor, value: cute.Constexpr) -> None:
    t, _, _ = cute.arch.thread_idx()
    A[t] = value


built: list[int] = []


@testing.autotune_jit(params_dict={"value": [3, 4]}, update_on_change=["n"], warmup_iterations=0, iterations=1)
@cute.jit
def host(A: cute.Tensor, n: int, value: cute.Constexpr = 7) -> None:
    built.append(value)
    kernel(A, value).launch(grid=1, block=4)


def test_an_autotuned_function_is_timed_once_for_each_key(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter([2.0, 1.0, 1.0, 2.0])

    def benchmark(*_: Any, **__: Any) -> float:
        return next(times)

    monkeypatch.setattr(testing, "benchmark", benchmark)
    built.clear()
    A = np.zeros(4, np.int32)
    host(A, 1)
    assert (A.tolist(), built) == ([4] * 4, [3, 4, 4])
    host(A, 1)
    host(A, 2)
    assert (A.tolist(), built) == ([3] * 4, [3, 4, 4, 3, 4, 3])


def test_an_autotuned_function_is_compiled_with_the_parameters_of_the_call() -> None:
    A = np.zeros(4, np.int32)
    cute.compile(host, A, 1, value=5)(A, 1)
    assert A.tolist() == [5] * 4
    cute.compile(host, A, 1)(A, 1)
    assert A.tolist() == [7] * 4


def test_the_hint_tells_why_no_combination_can_be_launched() -> None:
    def run(**parameters: Any) -> Callable[[], None]:
        raise ValueError(f"not {parameters}")

    with pytest.raises(LaunchError, match="no combination of value can be launched") as caught:
        testing.tune(run, {"value": [1, 2]})
    assert caught.value.hint == "the last one fails: not {'value': 2}"
