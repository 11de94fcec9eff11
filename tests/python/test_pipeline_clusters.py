# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pipelines of TMA copies, and of the blocks of a cluster."""

from typing import Any

import numpy as np
import pytest
from tilefold.compiler.frontend.diagnostics import ProgramError

from tests.python.test_pipelines import CONSUMER, COUNT, TILE, group, refusal
from tilefold import cute
from tilefold.cute import pipeline
from tilefold.cute.nvgpu import cpasync

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false


@cute.kernel
def by_tma_copies(A, B, bytes: cute.Constexpr):
    """Tiles of 64 x 8 elements, by a tensor map."""
    t, _, _ = cute.arch.thread_idx()
    layout = cute.make_layout((TILE, 8))
    sA = cute.make_smem_tensor(cute.make_layout((TILE, 8, 2)), cute.Float32, alignment=128)
    load, gA = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileG2SOp(), A, layout, (TILE, 8))
    parts = cute.group_modes(sA, 0, 2), cute.group_modes(cute.local_tile(gA, (TILE, 8), (0, None)), 0, 2)
    tAsA, tAgA = cpasync.tma_partition(load, 0, cute.make_layout(1), *parts)
    pipe = pipeline.PipelineTmaAsync.create(
        num_stages=2, producer_group=group(), consumer_group=group(2), tx_count=bytes
    )
    producer, consumer = pipe.make_participants()
    if cute.arch.warp_idx() == 0:
        for i in cute.range(A.shape[1] // 8):
            stage = producer.acquire_and_advance()
            bar = stage.barrier
            with cute.arch.elect_one():
                cute.copy(load, tAgA[None, i], tAsA[None, stage.index], tma_bar_ptr=bar)
            stage.commit()
        producer.tail()
    else:
        for i in cute.range(A.shape[1] // 8):
            stage = consumer.wait_and_advance()
            for j in cute.range(8):
                B[t - 32, 8 * i + j] = sA[t - 32, j, stage.index] * 2.0
            stage.release()


def test_tma_copies() -> None:
    A = np.asfortranarray(np.arange(TILE * 40, dtype=np.float32).reshape(40, TILE).T)
    for seed in range(3):
        B = np.full_like(A, np.nan)
        by_tma_copies(A, B, 4 * TILE * 8).launch(1, 96, device="sim", seed=seed)
        np.testing.assert_array_equal(B, 2 * A)


def test_tma_copies_of_other_bytes_than_the_pipeline_expects() -> None:
    A = np.zeros((TILE, 40), np.float32, order="F")
    with pytest.raises(ProgramError, match=r"E5011.*have 2048 bytes, but the pipeline expects 1024"):
        by_tma_copies(A, A, 1024).build(96)


@cute.kernel(cluster=(2, 2))
def in_a_cluster(A, B, modes: cute.Constexpr, told: cute.Constexpr, signals: cute.Constexpr = False):
    """Each block loads its own stages, but fills one only when the blocks that share tiles with it have read theirs."""
    t, _, _ = cute.arch.thread_idx()
    x, y, _ = cute.arch.block_idx()
    sA = cute.make_smem_tensor((TILE, 2), cute.Float32)
    pipe = pipeline.PipelineTmaAsync.create(
        num_stages=2,
        producer_group=group(),
        consumer_group=group(2 * told),
        tx_count=4 * TILE,
        cta_layout_vmnk=cute.make_layout((1, 2, 2, 1)),
        mcast_mode_mn=modes,
        enable_multicast_signaling=signals,
        defer_sync=True,
    )
    pipeline.pipeline_init_arrive((2, 2), is_relaxed=True)
    producer, consumer = pipe.make_participants()
    pipeline.pipeline_init_wait((2, 2))
    if cute.arch.warp_idx() == 0:
        for i in cute.range(A.shape[1]):
            stage = producer.acquire_and_advance()
            bar = stage.barrier
            with cute.arch.elect_one():
                cute.arch.cp_async_bulk_load(sA.ptr(0, stage.index), A.ptr(0, i, x, y), 4 * TILE, bar)
            stage.commit()
        producer.tail()
    else:
        for i in cute.range(A.shape[1]):
            stage = consumer.wait_and_advance()
            B[t - 32, i, x, y] = sA[t - 32, stage.index] * 2.0
            stage.release()


@pytest.mark.parametrize(
    ("modes", "told", "signals"), [((1, 0), 2, False), ((0, 1), 2, False), ((0, 1), 1, True), ((1, 0), 1, True)]
)
@pytest.mark.sampled(2)
def test_blocks_of_a_cluster_tell_those_that_share_tiles(modes: tuple[int, int], told: int, signals: bool) -> None:
    source = np.arange(TILE * COUNT * 4, dtype=np.float32).reshape(2, 2, COUNT, TILE).T
    for seed in range(3):
        result = np.full((2, 2, COUNT, TILE), np.nan, np.float32).T
        in_a_cluster(source, result, modes, told, signals).launch((2, 2), 96, device="sim", seed=seed)
        np.testing.assert_array_equal(result, 2 * source)


def test_layouts_of_clusters_that_are_refused() -> None:
    def create(layout: Any, size: int = 3) -> Any:
        def made() -> None:
            pipe = pipeline.PipelineTmaAsync.create(
                num_stages=2, producer_group=group(), consumer_group=group(size), tx_count=16, cta_layout_vmnk=layout
            )
            pipe.consumer_release(pipeline.make_pipeline_state(CONSUMER, 2))

        return made

    assert "a cluster cannot have the layout (2,2):(1,2)" in str(refusal(create(cute.make_layout((2, 2)))))
    assert "cannot have the layout" in str(refusal(create(cute.make_layout((1, 2, 2, 1), stride=(0, 2, 1, 0)))))
    divided = cute.tiled_divide(cute.make_layout((2, 2, 1)), (1,))
    assert divided.shape == ((1,), 2, 2, 1)
    assert "the consumer group has 4 arrivals" in str(refusal(create(divided, 4)))
    assert "the consumer group has 4 arrivals" in str(refusal(create(cute.make_layout((1, 2, 2, 1)), 4)))
    assert "but the block has only 2 warps" in str(refusal(create(cute.make_layout((1, 2, 2, 1)), 9)))
