# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""TMA copies that a whole warp executes, of which one thread issues each; registers with which kernels begin that
hand them over.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tilefold.base.errors import TilefoldError

from tests.kernels.harness import STAGES
from tilefold import cute
from tilefold.cute import pipeline
from tilefold.cute.nvgpu import cpasync

TILE = (64, 64)
BYTES = 64 * 64 * 2


@cute.kernel
def moved(A: cute.Tensor, B: cute.Tensor, n: cute.Int32, chosen: cute.Constexpr):
    """Copies a tile of A to B; `chosen(tidx, n)` says which threads execute the TMA copies."""
    tidx = cute.arch.thread_idx()[0]
    layout = cute.make_composed_layout(cute.make_swizzle(3, 3, 3), 0, cute.make_layout(TILE, stride=(64, 1)))
    load, gA = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileG2SOp(), A, layout, TILE)
    store, gB = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileS2GOp(), B, layout, TILE)
    s = cute.group_modes(cute.make_smem_tensor(layout, cute.Float16, 1024), 0, 2)
    full = cute.make_smem_tensor((1,), cute.Int64, 8).ptr(0)
    one = cute.make_layout(1)
    into, source = cpasync.tma_partition(load, 0, one, s, cute.group_modes(gA, 0, 2))
    out, target = cpasync.tma_partition(store, 0, one, s, cute.group_modes(gB, 0, 2))
    if tidx == 0:
        cute.arch.mbarrier_init(full, 1)
        cute.arch.mbarrier_init_fence()
        cute.arch.mbarrier_arrive_and_expect_tx(full, BYTES)
    cute.arch.sync_threads()
    for _ in cute.range(n):
        if chosen(tidx, n):
            cute.prefetch(load, source)
            cute.copy(load, source, into, tma_bar_ptr=full)
    cute.arch.mbarrier_wait(full, 0)
    if chosen(tidx, n):
        cute.copy(store, out, target)
        cute.arch.cp_async_bulk_commit_group()
        cute.arch.cp_async_bulk_wait_group(0)


def first_warp(tidx: Any, n: Any) -> Any:
    return cute.arch.make_warp_uniform(cute.arch.warp_idx()) == 0


def low_threads(tidx: Any, n: Any) -> Any:
    return tidx < 32


def of_run_time(tidx: Any, n: Any) -> Any:
    return (tidx // 32) * n == n


def first_thread(tidx: Any, n: Any) -> Any:
    return tidx == 0


def last_lane(tidx: Any, n: Any) -> Any:
    return (tidx % 32 == 31) & (tidx // 32 == n)


def elected(tidx: Any, n: Any) -> Any:
    return (tidx >= 32) & cute.arch.elect_one()


def once(tidx: Any, n: Any) -> Any:
    return n == 1


WARPS = [first_warp, low_threads, of_run_time]
THREADS = [first_thread, last_lane, elected]


def case(chosen: Callable[[Any, Any], Any], stage: str = "instr") -> tuple[str, Any, Any]:
    A = np.random.default_rng(0).random(TILE).astype(np.float16)
    B = np.zeros(TILE, np.float16)
    call = moved(A, B, 1, chosen)
    call.launch(grid=1, block=64, device="sim", stage=stage)
    return call.build(64).ptx("sm_90a"), A, B


@pytest.mark.parametrize("chosen", WARPS)
def test_one_thread_of_a_warp_issues_a_copy_that_the_warp_executes(chosen: Callable[[Any, Any], Any]) -> None:
    ptx, A, B = case(chosen)
    assert np.array_equal(A, B)
    assert ptx.count("elect.sync") == 2  # one for the prefetch and the load, which follow each other


@pytest.mark.parametrize("chosen", THREADS)
def test_a_thread_that_the_program_chooses_issues_it(chosen: Callable[[Any, Any], Any]) -> None:
    ptx, A, B = case(chosen)
    assert np.array_equal(A, B)
    assert ptx.count("elect.sync") == (2 if chosen is elected else 0)


@pytest.mark.parametrize("stage", STAGES)
def test_at_every_stage(stage: str) -> None:
    _, A, B = case(first_warp, stage)
    assert np.array_equal(A, B)


def test_a_block_of_one_thread_elects_nobody() -> None:
    A, B = np.ones(TILE, np.float16), np.zeros(TILE, np.float16)
    call = moved(A, B, 1, once)
    call.launch(grid=1, block=1, device="sim")
    assert np.array_equal(A, B)
    assert "elect.sync" not in call.build(1).ptx("sm_90a")


@cute.kernel
def handing_over(B: cute.Tensor, inc: cute.Constexpr, dec: cute.Constexpr):
    tidx = cute.arch.thread_idx()[0]
    if tidx < 128:
        cute.arch.setmaxregister_decrease(dec)
    else:
        cute.arch.setmaxregister_increase(inc)
        B[tidx - 128] = 1.0


@pytest.mark.parametrize(
    ("block", "inc", "begins"), [(256, 232, 232), (256, 240, 240), (384, 232, None), (128, 256, None)]
)
def test_kernels_begin_with_no_more_registers_than_a_warpgroup_asks_for(
    block: int, inc: int, begins: int | None
) -> None:
    B = np.zeros(256, np.float32)
    call = handing_over(B, inc, 24)
    call.launch(grid=1, block=block, device="sim")
    assert (B[: block - 128] == 1).all()
    assert (f".maxnreg {begins}" in call.build(block).ptx("sm_90a")) == (begins is not None)


@cute.kernel
def parts_of_two_warps(C: cute.Tensor, checked: cute.Constexpr):
    """The second of two warps multiplies: its threads take the parts of an MMA of one warp."""
    tidx = cute.arch.thread_idx()[0]
    mma = cute.make_tiled_mma("SM80_16x8x16_F32F16F16F32_TN")
    part = mma.get_slice(tidx).partition_C(C)
    coords = mma.get_slice(tidx).partition_C(cute.make_identity_tensor((16, 8)))
    if cute.arch.make_warp_uniform(tidx // 32) == 1 or not checked:
        for i in cute.range_constexpr(4):
            part[i] = coords[i][0] * 8 + coords[i][1]


def test_threads_beyond_an_mma_take_its_parts_again() -> None:
    C = np.zeros((16, 8), np.int32)
    parts_of_two_warps(C, True).launch(grid=1, block=64, device="sim")
    assert np.array_equal(C.ravel(), np.arange(128))


def test_all_threads_of_a_block_beyond_an_mma_are_refused() -> None:
    with pytest.raises(TilefoldError) as caught:
        parts_of_two_warps(np.zeros((16, 8), np.int32), False).launch(grid=1, block=64, device="sim")
    assert "E0321" in str(caught.value)


@cute.kernel
def own_barriers(B: cute.Tensor):
    """Each group of 64 threads meets at a barrier whose number depends on it."""
    tidx = cute.arch.thread_idx()[0]
    group = cute.arch.make_warp_uniform(tidx // 64)
    s = cute.make_smem_tensor((128,), cute.Int32)
    s[tidx] = tidx
    pipeline.arrive_and_wait(barrier_id=group + 1, num_threads=64)
    B[tidx] = s[group * 64 + (63 - tidx % 64)]


def test_barriers_of_a_number_that_the_kernel_computes() -> None:
    B = np.zeros(128, np.int32)
    call = own_barriers(B)
    call.launch(grid=1, block=128, device="sim")
    assert np.array_equal(B, np.concatenate([np.arange(64)[::-1], np.arange(64, 128)[::-1]]))
    assert "bar.sync \t%r" in call.build(128).ptx("sm_90")
