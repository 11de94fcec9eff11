# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pipelines, tensor memory and tiles on request in a kernel in Python: warps load, multiply, ask, and store."""

from typing import Any

import numpy as np
import pytest
from tilefold.base.errors import TilefoldError
from tilefold.builder.tensors.nvgpu import CtaGroup
from tilefold.layout.algebra.core import Layout

import tilefold.cutlass as cutlass
from tilefold import cute
from tilefold.cute import pipeline, utils
from tilefold.cute.nvgpu import cpasync, tcgen05
from tilefold.cute.utils import blackwell_helpers as sm100

F16, F32 = cute.Float16, cute.Float32
STAGES, DEPTH = 2, 64
EPILOGUE, MMA, LOAD, ASK = range(4), 4, 5, 6
THREADS = 32 * 7
GROUP = pipeline.CooperativeGroup
THREAD = pipeline.Agent.Thread


@cute.struct
class Storage:
    filled: cute.struct.MemRange[cute.Int64, 2 * STAGES]
    summed: cute.struct.MemRange[cute.Int64, 2]
    asked: cute.struct.MemRange[cute.Int64, 2]
    freed: cute.Int64
    slot: cute.Int32
    answer: cute.struct.Align[cute.struct.MemRange[cute.Int32, 4], 16]


@cute.kernel
def on_request(
    mma: cute.TiledMma,
    atom_a: Any,
    mA: Any,
    atom_b: Any,
    mB: Any,
    mC: cute.Tensor,
    laid_a: Any,
    laid_b: Any,
    tile: cute.Constexpr,
    blocks: cute.Constexpr,
    params: Any,
) -> None:
    t, _, _ = cute.arch.thread_idx()
    warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
    rank = cute.arch.make_warp_uniform(cute.arch.block_idx_in_cluster())
    v, _, _, _ = blocks.get_flat_coord(rank)
    size = cute.size(blocks)
    smem = utils.SmemAllocator()
    storage = smem.allocate(Storage)
    sA = smem.allocate_tensor(F16, laid_a.outer, 128, laid_a.inner)
    sB = smem.allocate_tensor(F16, laid_b.outer, 128, laid_b.inner)
    tmem = utils.TmemAllocator(
        storage.slot.ptr, barrier_for_retrieve=pipeline.NamedBarrier(1, 32 * 5), is_two_cta=size > 1,
        two_cta_tmem_dealloc_mbar_ptr=storage.freed.ptr,
    )  # fmt: skip
    bytes = size * (
        cute.size_in_bytes(F16, cute.select(laid_a, mode=[0, 1, 2]))
        + cute.size_in_bytes(F16, cute.select(laid_b, mode=[0, 1, 2]))
    )
    tiles = pipeline.PipelineTmaUmma.create(
        num_stages=STAGES, producer_group=GROUP(THREAD), consumer_group=GROUP(THREAD), tx_count=bytes,
        barrier_storage=storage.filled.data_ptr(), cta_layout_vmnk=blocks, defer_sync=True,
    )  # fmt: skip
    sums = pipeline.PipelineUmmaAsync.create(
        num_stages=1, producer_group=GROUP(THREAD), consumer_group=GROUP(THREAD, 128 * size),
        barrier_storage=storage.summed.data_ptr(), cta_layout_vmnk=blocks, defer_sync=True,
    )  # fmt: skip
    answers = pipeline.PipelineClcFetchAsync.create(
        num_stages=1, producer_group=GROUP(THREAD), consumer_group=GROUP(THREAD, 32 + size * 32 * 6), tx_count=16,
        barrier_storage=storage.asked.data_ptr(), cta_layout_vmnk=blocks, defer_sync=True,
    )  # fmt: skip
    pipeline.pipeline_init_arrive(blocks, is_relaxed=True)

    thr = mma.get_slice(v)
    tCgA = thr.partition_A(cute.local_tile(mA, (tile[0], tile[2]), (None, None)))
    tCgB = thr.partition_B(cute.local_tile(mB, (tile[1], tile[2]), (None, None)))
    tCgC = thr.partition_C(cute.local_tile(mC, (tile[0], tile[1]), (None, None)))
    tCrA, tCrB = mma.make_fragment_A(sA), mma.make_fragment_B(sB)
    one = cute.make_layout(1)
    tAsA, tAgA = cpasync.tma_partition(atom_a, 0, one, cute.group_modes(sA, 0, 3), cute.group_modes(tCgA, 0, 3))
    tBsB, tBgB = cpasync.tma_partition(atom_b, 0, one, cute.group_modes(sB, 0, 3), cute.group_modes(tCgB, 0, 3))
    count = cute.size(tCgA, mode=[4])
    pipeline.pipeline_init_wait(blocks)

    scheduler = utils.ClcDynamicPersistentTileScheduler.create(
        params, cute.arch.block_idx(), cute.arch.grid_dim(), storage.answer.data_ptr()
    )
    work = scheduler.initial_work_tile_info()
    answer = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, 1)
    if warp == LOAD:
        producer = tiles.make_producer()
        while work.is_valid_tile:
            m, n, _ = work.tile_idx
            for k in range(count):
                stage = producer.acquire_and_advance()
                cute.copy(atom_a, tAgA[None, m // size, k], tAsA[None, stage.index], tma_bar_ptr=stage.barrier)
                cute.copy(atom_b, tBgB[None, n, k], tBsB[None, stage.index], tma_bar_ptr=stage.barrier)
            answers.consumer_wait(answer)
            work = scheduler.get_current_work()
            answers.consumer_release(answer)
            answer.advance()
        producer.tail()
    if warp == ASK and rank == 0:
        asking = pipeline.make_pipeline_state(pipeline.PipelineUserType.ProducerConsumer, 1)
        while work.is_valid_tile:
            answers.producer_acquire(asking)
            scheduler.advance_to_next_work(answers.producer_get_barrier(asking))
            asking.advance()
            answers.consumer_wait(answer)
            work = scheduler.get_current_work()
            answers.consumer_release(answer)
            answer.advance()
        answers.producer_tail(asking)
    fake = mma.make_fragment_C(mma.partition_shape_C((tile[0], tile[1])))
    if warp == MMA:
        tmem.wait_for_alloc()
        acc = cute.make_tensor(tmem.retrieve_ptr(F32), fake.layout)
        consumer, summing = tiles.make_consumer(), sums.make_producer()
        while work.is_valid_tile:
            if tiles.is_leader_cta:
                summed = summing.acquire_and_advance()
                mma.set(tcgen05.Field.ACCUMULATE, False)
                for _ in range(count):
                    stage = consumer.wait_and_advance()
                    for k in cute.range_constexpr(cute.size(tCrA, mode=[2])):
                        at = (None, None, k, stage.index)
                        cute.gemm(mma, acc, tCrA[at], tCrB[at], acc)
                        mma.set(tcgen05.Field.ACCUMULATE, True)
                    stage.release()
                summed.commit()
            answers.consumer_wait(answer)
            work = scheduler.get_current_work()
            answers.consumer_release(answer)
            answer.advance()
        summing.tail()
    if warp < MMA:
        tmem.allocate(64)
        tmem.relinquish_alloc_permit()
        tmem.wait_for_alloc()
        pointer = tmem.retrieve_ptr(F32)
        acc = cute.make_tensor(pointer, fake.layout)
        part = acc[(None, None), 0, 0]
        load = tcgen05.make_tmem_copy(cute.make_copy_atom(tcgen05.Ld32x32bOp(tcgen05.Repetition.x32), F32), part)
        mine = load.get_slice(t)
        tTR = mine.partition_S(part)
        reader = sums.make_consumer()
        while work.is_valid_tile:
            m, n, _ = work.tile_idx
            gD = mine.partition_D(tCgC[(None, None), 0, 0, m // size, n])
            rD = cute.make_rmem_tensor(gD.shape, F32)
            stage = reader.wait_and_advance()
            cute.copy(load, tTR, rD)
            cute.arch.fence_view_async_tmem_load()
            stage.release()
            cute.autovec_copy(rD, gD)
            answers.consumer_wait(answer)
            work = scheduler.get_current_work()
            answers.consumer_release(answer)
            answer.advance()
        cute.arch.barrier(barrier_id=2, number_of_threads=128)
        tmem.free(pointer)


@cute.jit
def multiply(A: cute.Tensor, B: cute.Tensor, C: cute.Tensor, group: cutlass.Constexpr) -> None:
    size = group.value
    tile = (128 * size, 64, DEPTH)
    k_major = tcgen05.OperandMajorMode.K
    mma = sm100.make_trivial_tiled_mma(F16, F16, k_major, k_major, F32, group, tile[:2])
    blocks = cute.tiled_divide(cute.make_layout((size, 1, 1)), (mma.thr_id.shape,))
    laid_a, laid_b = (make(mma, tile, F16, STAGES) for make in (sm100.make_smem_layout_a, sm100.make_smem_layout_b))
    a_op = sm100.cluster_shape_to_tma_atom_A((size, 1), mma.thr_id)
    b_op = sm100.cluster_shape_to_tma_atom_B((size, 1), mma.thr_id)
    stage = (None, None, None, 0)
    atom_a, mA = cute.nvgpu.make_tiled_tma_atom_A(a_op, A, cute.slice_(laid_a, stage), tile, mma, blocks.shape)
    atom_b, mB = cute.nvgpu.make_tiled_tma_atom_B(b_op, B, cute.slice_(laid_b, stage), tile, mma, blocks.shape)
    counts = (*(extent // part for extent, part in zip(C.shape, (128, tile[1]), strict=True)), 1)
    params = utils.ClcDynamicPersistentTileSchedulerParams(counts, (size, 1, 1))
    on_request(mma, atom_a, mA, atom_b, mB, C, laid_a, laid_b, tile, blocks, params).launch(
        grid=params.get_grid_shape(), block=THREADS, cluster=(size, 1, 1)
    )


@pytest.mark.parametrize("group", CtaGroup)
def test_blocks_multiply_the_tiles_that_they_are_given(group: CtaGroup) -> None:
    chance = np.random.default_rng(5)
    a = chance.integers(-2, 3, (256 * group.value, 2 * DEPTH)).astype(np.float16)
    b = chance.integers(-2, 3, (128, 2 * DEPTH)).astype(np.float16)
    c = np.zeros((len(a), len(b)), np.float32)
    multiply(a, b, c, group)
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32).T)


def test_a_pair_without_fences_is_right_where_any_synchronisation_is_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    for fence in ("_before", "_after"):
        monkeypatch.setattr(f"tilefold.builder.pipelines.tensor_core_pipelines.{fence}", lambda: None)
    with pytest.raises(TilefoldError, match="E3263"):
        test_blocks_multiply_the_tiles_that_they_are_given(CtaGroup.TWO)
    monkeypatch.setenv("TILEFOLD_SIM_TCGEN05_FENCES", "0")
    test_blocks_multiply_the_tiles_that_they_are_given(CtaGroup.TWO)


@cute.kernel
def passed_to_the_leader(out: cute.Tensor, by_parts: cute.Constexpr[bool]) -> None:
    t, _, _ = cute.arch.thread_idx()
    rank = cute.arch.block_idx_in_cluster()
    held = utils.SmemAllocator().allocate_tensor(cute.Int32, 32)
    to_leader = pipeline.PipelineAsyncUmma.create(
        num_stages=1, producer_group=GROUP(THREAD, 64), consumer_group=GROUP(THREAD),
        cta_layout_vmnk=cute.make_layout(((2,), 1, 1, 1)), defer_sync=True,
    )  # fmt: skip
    own = pipeline.PipelineAsync.create(
        num_stages=1, producer_group=GROUP(THREAD, 32), consumer_group=GROUP(THREAD, 32), defer_sync=True
    )
    pipeline.pipeline_init_arrive(cluster_shape_mn=(2, 1), is_relaxed=True)
    pipeline.pipeline_init_wait(cluster_shape_mn=(2, 1))
    state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, 1)
    held[t] = 100 * rank + t
    own.producer_commit(state)
    own.consumer_wait(state)
    if by_parts:
        to_leader.sync_object_full.arrive(state.index, to_leader.producer_mask)
    else:
        to_leader.producer_commit(state)
    if rank == 0:
        to_leader.consumer_wait(state, to_leader.consumer_try_wait(state))
        other = cute.make_tensor(cute.arch.mapa(held.iterator, 1), held.layout)
        out[t] = other[t] + held[31 - t]
    cute.arch.cluster_arrive()
    cute.arch.cluster_wait()


def test_a_pair_sees_what_threads_of_both_blocks_wrote_and_mbarriers_made_before_a_relaxed_barrier() -> None:
    for seed in range(3):
        out = np.zeros(32, np.int32)
        passed_to_the_leader(out, seed == 2).launch(grid=2, block=32, cluster=2, device="sim", seed=seed)
        assert out.tolist() == [131] * 32


def tile_of(*args: Any, **options: Any) -> tuple[Any, Any]:
    m, n = sm100.compute_epilogue_tile_shape(*args, **options)
    return str(m), str(n)


def test_an_epilogue_handles_tiles_as_its_warps_and_types_allow() -> None:
    row, column = utils.LayoutEnum.ROW_MAJOR, utils.LayoutEnum.COL_MAJOR
    assert tile_of((128, 256, 64), False, row, F16) == ("128:1", "32:1")
    assert tile_of((128, 256, 64), False, row, F16, layout_c=row, elem_ty_c=F16) == ("128:1", "64:1")
    assert tile_of((64, 128, 64), True, row, F32) == ("64:1", "(32,2):(1,64)")
    assert sm100.compute_epilogue_tile_size(128, 256, False, 16, 16) == (128, 64)
    assert sm100.compute_epilogue_tile_size(128, 256, True, 16) == (128, 32)
    whole = sm100.compute_epilogue_tile_shape((128, 128, 64), False, column, F16)
    load = sm100.get_tmem_load_op((128, 128, 64), column, F16, F32, whole, False)
    assert "16dp256b4x" in load.attribute.atom.name
    load = sm100.get_tmem_load_op((128, 128, 64), row, F16, F32, whole, False)
    assert "32dp32b32x" in load.attribute.atom.name
    load = sm100.get_tmem_load_op((128, 256, 64), column, F16, F32, (128, 256), False)
    assert "16dp256b32x" in load.attribute.atom.name
    load = sm100.get_tmem_load_op((64, 128, 64), row, cute.Int8, cute.Int32, (64, 128), False)
    assert "16dp32b64x" in load.attribute.atom.name
    with pytest.raises(TilefoldError, match="no load of tensor memory suits") as caught:
        _ = sm100.get_tmem_load_op((128, 128, 64), row, F32, F16, whole, False)
    assert caught.value.code == "E0304"
    with pytest.raises(TilefoldError, match="fewer than the 16 that the warps"):
        _ = sm100.compute_epilogue_tile_shape((64, 8, 64), True, row, F16)


def test_mistakes_with_pairs_are_errors() -> None:
    @cute.kernel
    def other_cluster(A: cute.Tensor) -> None:
        _ = pipeline.PipelineUmmaAsync.create(
            num_stages=1, producer_group=GROUP(THREAD), consumer_group=GROUP(THREAD),
            cta_layout_vmnk=Layout((4, 1, 1, 1), (1, 0, 0, 0)),
        )  # fmt: skip

    for kernel, text in ((other_cluster, "4 blocks cannot"),):
        with pytest.raises(TilefoldError, match="E5011") as caught:
            kernel(np.zeros(1, np.float32)).build(128)
        assert text in str(caught.value)
