# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a launch takes before the driver stays within three times its target, on any machine that runs the tests.

`python -m benchmarks.launch_path` takes the figures themselves, as `benchmarks.launch` does on a GPU.
"""

import time

import pytest

from benchmarks import launch, launch_path
from benchmarks.compiler import SLACK

ARRAY_TARGET_US = 3.0
"""An array that is read by its interface."""


@pytest.fixture(autouse=True)
def processor_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Durations are those for which this process had a processor."""
    monkeypatch.setattr(time, "perf_counter", time.process_time)


@pytest.mark.parametrize("count", launch.KERNELS)
def test_launch_on_arrays_by_their_interface(count: int) -> None:
    taken = launch_path.microseconds([launch_path.of_interface(count)], 5)
    assert taken <= SLACK * count * ARRAY_TARGET_US


@pytest.mark.parametrize("count", launch.KERNELS)
def test_launch_on_tensors(count: int) -> None:
    torch = pytest.importorskip("torch", reason="the target is for tensors of torch")
    limit = SLACK * launch.LIMITS[count]
    tensors, others = launch_path.of_torch(torch, count), launch_path.of_torch(torch, count, 8)
    assert launch_path.microseconds([tensors], 10) <= limit
    assert launch_path.microseconds([tensors, others], 10) <= 2 * limit
    assert launch_path.microseconds([tensors], 10, dynamic=True) <= 2 * limit
