# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Mbarriers by number, groups of bulk stores, and tensor maps with their layouts as one argument."""

from typing import Any

import numpy as np
import pytest
from tilefold.base.errors import TilefoldError

from tilefold import cute
from tilefold.cute import pipeline
from tilefold.cute.nvgpu import cpasync

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false

GROUP, OP = pipeline.CooperativeGroup(pipeline.Agent.Thread, 1, alignment=1), pipeline.PipelineOp


@cute.kernel
def doubling(load: cpasync.TmaInfo, store: cpasync.TmaInfo, n: cute.Constexpr):
    """Thread 0 loads tiles and stores what the block doubles."""
    t, _, _ = cute.arch.thread_idx()
    sA = cute.make_smem_tensor(load.smem_layout, cute.Float32)
    bars = cute.make_smem_tensor(2, cute.Int64)
    full = pipeline.MbarrierArray(bars.iterator, 2, (OP.TmaLoad, GROUP), tx_count=4 * 64)
    fence = pipeline.TmaStoreFence(2)
    cute.arch.sync_threads()
    tiles = cute.local_tile(load.tma_tensor, (64, 1), (0, None))
    target = cute.local_tile(store.tma_tensor, (64, 1), (0, None))
    one = cute.make_layout(1)
    parts, sources = cpasync.tma_partition(load.atom, 0, one, cute.group_modes(sA, 0, 2), cute.group_modes(tiles, 0, 2))
    stored, places = cpasync.tma_partition(
        store.atom, 0, one, cute.group_modes(sA, 0, 2), cute.group_modes(target, 0, 2)
    )
    for i in cute.range(n):
        stage = i % 2
        if t == 0:
            full.arrive(stage, None)
            cute.copy(load.atom, sources[None, i], parts[None, stage], tma_bar_ptr=full.get_barrier(stage))
        full.wait(stage, i // 2 % 2)
        sA[t, 0, stage] = 2 * sA[t, 0, stage]
        cute.arch.fence_proxy("async.shared", space="cta")
        cute.arch.sync_threads()
        if t == 0:
            cute.copy(store.atom, stored[None, stage], places[None, i])
            fence.arrive_and_wait()
        cute.arch.sync_threads()
    if t == 0:
        fence.tail()


@cute.jit
def double(A: cute.Tensor, B: cute.Tensor):
    tile = cute.make_layout((64, 1))
    load = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileG2SOp(), A, cute.make_layout((64, 1, 2)), (64, 1))
    atom, coords = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileS2GOp(), B, tile, (64, 1))
    doubling(load, cpasync.TmaInfo(atom, coords, tile), A.shape[1]).launch(grid=1, block=64)


def test_tma_copies() -> None:
    A = np.arange(64 * 5, dtype=np.float32).reshape(5, 64).T
    B = np.zeros((5, 64), np.float32).T
    double(A, B)
    assert (B == 2 * A).all()


@cute.kernel
def handing(A: cute.Tensor, B: cute.Tensor):
    """Warp 0 fills, warp 1 reads; each thread arrives by itself, or with its copies."""
    t, _, _ = cute.arch.thread_idx()
    sA, bars = cute.make_smem_tensor(32, cute.Float32), cute.make_smem_tensor(2, cute.Int64)
    threads = pipeline.CooperativeGroup(pipeline.Agent.Thread, 32)
    full = pipeline.MbarrierArray(bars, 2, (OP.AsyncLoad, threads))
    empty = full.recast_to_new_op_type(OP.AsyncThread)
    cute.arch.sync_threads()
    atom = cute.make_copy_atom(cpasync.CopyG2SOp(), cute.Float32, num_bits_per_copy=32)
    if t < 32:
        cute.copy(atom, cute.local_tile(A, (1,), (t,)), cute.local_tile(sA, (1,), (t,)))
        full.arrive(0)
        empty.wait(1, 0)
        sA[t] = 7.0
    else:
        full.wait(0, 0)
        B[t - 32] = sA[63 - t]
        empty.arrive(1)
        B[t] = cute.where(empty.test_wait(1, 0) | True, 1.0, 0.0)


def test_threads_hand_over() -> None:
    A, B = np.arange(32, dtype=np.float32), np.zeros(64, np.float32)
    handing(A, B).launch(grid=1, block=64, device="sim")
    assert (B[:32] == A[::-1]).all()
    assert (B[32:] == 1).all()


def nothing() -> Any:
    return pipeline.TmaStoreFence()


def stores() -> Any:
    return pipeline.MbarrierArray(cute.make_smem_tensor(1, cute.Int64), 1, (OP.TmaStore, GROUP))


@cute.kernel
def mistaken(call: cute.Constexpr):
    call()


@pytest.mark.parametrize(("call", "words"), [(nothing, "0 stages"), (stores, "no mbarriers")])
def test_mistakes(call: Any, words: str) -> None:
    with pytest.raises(TilefoldError, match=words) as caught:
        mistaken(call).launch(grid=1, block=32, device="sim")
    assert caught.value.code == "E5011"
