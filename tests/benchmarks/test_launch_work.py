# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A launch makes few calls of functions before the driver's, on any machine.

`python -m benchmarks.launch_path` measures its time, as `benchmarks.launch` does on a GPU.
"""

from collections.abc import Callable

import pytest
from tilefold.runtime.cuda import direct

from benchmarks import launch, launch_path
from tests.work import calls

MOST = {3: 54, 8: 114}
"""By the number of arrays that are read by their interface: five calls more than were counted with Python 3.11."""


@pytest.fixture(autouse=True)
def counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """What `microseconds` returns are calls."""

    def thousand_calls(call: Callable[[], object], _: int) -> float:
        return 1e3 * calls(call)

    monkeypatch.setattr(launch_path, "nanoseconds", thousand_calls)


@pytest.mark.parametrize("count", launch.KERNELS)
def test_launch_on_arrays_by_their_interface(count: int) -> None:
    arrays = launch_path.of_interface(count)
    assert 1 < launch_path.microseconds([arrays], 1) <= MOST[count]
    assert launch_path.microseconds([arrays], 1, dynamic=True) <= MOST[count]


@pytest.mark.parametrize("count", launch.KERNELS)
def test_launch_on_tensors(count: int) -> None:
    torch = pytest.importorskip("torch", reason="the target is for tensors of torch")
    tensors, others = launch_path.of_torch(torch, count), launch_path.of_torch(torch, count, 8)
    assert launch_path.microseconds([tensors], 1) <= MOST[count]
    assert launch_path.microseconds([tensors, others], 1) <= 2 * MOST[count]
    assert launch_path.microseconds([tensors], 1, dynamic=True) <= 2 * MOST[count]


NATIVE = 16
"""The most calls of a launch that is machine code, for any number of tensors: five more than were counted."""


@pytest.mark.parametrize("count", launch.KERNELS)
def test_native_launch_on_tensors(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch", reason="these are tensors of torch")
    if not hasattr(torch.Tensor, "__dlpack_c_exchange_api__"):
        pytest.skip("this torch does not have DLPack's functions")
    monkeypatch.setattr(direct, "REPEATS", 1)
    tensors, others = launch_path.of_torch(torch, count), launch_path.of_torch(torch, count, 8)
    assert launch_path.microseconds([tensors], 1) <= NATIVE
    assert launch_path.microseconds([tensors], 1, maps=True) <= NATIVE
    assert launch_path.microseconds([tensors, others], 1) <= 2 * NATIVE
