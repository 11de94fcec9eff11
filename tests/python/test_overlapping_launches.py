# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Launches with use_pdl, which may begin before the one before has ended: its results are read behind a wait."""

import re
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from tilefold.base.errors import TilefoldError

from tilefold import cute
from tilefold.cute.nvgpu import cpasync

BLOCKS, THREADS = 4, 64
Floats = NDArray[np.float32]


@cute.kernel
def lets_begin(a: cute.Tensor, b: cute.Tensor) -> None:
    t = cute.arch.block_idx()[0] * THREADS + cute.arch.thread_idx()[0]
    cute.arch.griddepcontrol_launch_dependents()
    b[t] = a[t] + 1.0


@cute.kernel
def lets_nothing_begin(a: cute.Tensor, b: cute.Tensor) -> None:
    t = cute.arch.block_idx()[0] * THREADS + cute.arch.thread_idx()[0]
    b[t] = a[t] + 1.0


@cute.kernel
def reads(b: cute.Tensor, c: cute.Tensor, waits: cute.Constexpr[str]) -> None:
    t, _, _ = cute.arch.thread_idx()
    first = cute.arch.block_idx()[0] * THREADS
    if waits == "all":
        cute.arch.griddepcontrol_wait()
    if waits in ("one", "one, without a barrier") and t == 0:
        cute.arch.griddepcontrol_wait()
    if waits == "one":
        cute.arch.sync_threads()
    value = b[first + THREADS - 1 - t]
    if waits == "later":
        cute.arch.griddepcontrol_wait()
    c[first + t] = value


def run(waits: str, before: cute.Kernel = lets_begin, change: Callable[[Floats], None] | None = None) -> bool:
    """Whether the second launch has the results of the first."""
    a, b, c = (np.full(BLOCKS * THREADS, value, np.float32) for value in (1, 0, 0))
    before(a, b).launch(BLOCKS, THREADS, device="sim")
    if change is not None:
        change(b)
    reads(b, c, waits).launch(BLOCKS, THREADS, device="sim", use_pdl=True)
    return bool((c == b).all())


@pytest.mark.parametrize("waits", ["all", "one"])
def test_results_are_read_behind_a_wait(waits: str) -> None:
    assert run(waits)


@pytest.mark.parametrize("waits", ["none", "later", "one, without a barrier"])
def test_a_missing_wait_is_found(waits: str) -> None:
    text = "argument b (1024 bytes)), which the launch before this one wrote, with no ptx.griddepcontrol.wait"
    with pytest.raises(TilefoldError, match=rf"E3205.*race: reads global .*{re.escape(text)}"):
        run(waits)


def test_what_the_launch_before_has_not_written_may_be_read() -> None:
    b, c = (np.full(BLOCKS * THREADS, value, np.float32) for value in (1, 0))
    lets_begin(b.copy(), np.zeros_like(b)).launch(BLOCKS, THREADS, device="sim")
    reads(b, c, "none").launch(BLOCKS, THREADS, device="sim", use_pdl=True)
    assert (c == b).all()


def test_a_launch_that_lets_nothing_begin_has_ended() -> None:
    assert run("none", lets_nothing_begin)


def test_what_the_host_has_written_since_may_be_read() -> None:
    def fill(b: Floats) -> None:
        b[:] = 5

    assert run("none", change=fill)


def test_launches_in_different_streams_are_not_compared() -> None:
    a, b, c = (np.full(BLOCKS * THREADS, value, np.float32) for value in (1, 0, 0))
    lets_begin(a, b).launch(BLOCKS, THREADS, device="sim", stream=1)
    reads(b, c, "none").launch(BLOCKS, THREADS, device="sim", stream=2, use_pdl=True)


def test_writes_of_other_processes_are_kept() -> None:
    a, b, c = (np.full(BLOCKS * THREADS, value, np.float32) for value in (1, 0, 0))
    lets_begin(a, b).launch(BLOCKS, THREADS, device="sim", processes=2)
    with pytest.raises(TilefoldError, match="the launch before this one"):
        reads(b[THREADS * 3 :], c, "none").launch(1, THREADS, device="sim", use_pdl=True)


@cute.kernel
def copies(b: cute.Tensor, c: cute.Tensor, waits: cute.Constexpr[bool]) -> None:
    t, _, _ = cute.arch.thread_idx()
    s = cute.make_smem_tensor((THREADS,), cute.Float32, 128)
    bar = cute.make_smem_tensor((1,), cute.Int64, 8).ptr(0)
    part = cute.local_tile(b, (THREADS,), (cute.arch.block_idx()[0],))
    if t == 0:
        cute.arch.mbarrier_init(bar, 1)
        cute.arch.mbarrier_init_fence()
        cute.arch.mbarrier_arrive_and_expect_tx(bar, THREADS * 4)
        if waits:
            cute.arch.griddepcontrol_wait()
        cute.copy(cute.make_copy_atom(cpasync.CopyBulkG2SOp(), cute.Float32), part, s, mbar_ptr=bar)
    cute.arch.sync_threads()
    cute.arch.mbarrier_wait(bar, 0)
    c[cute.arch.block_idx()[0] * THREADS + t] = s[t]


@pytest.mark.parametrize("waits", [True, False])
def test_bulk_copies_come_behind_the_wait_of_their_thread(waits: bool) -> None:
    """The wait makes results of threads visible to the async proxy, too."""
    a, b, c = (np.full(BLOCKS * THREADS, value, np.float32) for value in (1, 0, 0))
    lets_begin(a, b).launch(BLOCKS, THREADS, device="sim")
    if waits:
        copies(b, c, True).launch(BLOCKS, THREADS, device="sim", use_pdl=True)
        assert (c == b).all()
        return
    with pytest.raises(TilefoldError, match=r"E3205.*ptx.cp.async.bulk.*the launch before this one"):
        copies(b, c, False).launch(BLOCKS, THREADS, device="sim", use_pdl=True)
