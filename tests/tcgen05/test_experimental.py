# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`cute.experimental` on sm_100a: copies of views, pipelines that know their stages, tensor memory of a block."""

from typing import Any

import numpy as np
import pytest
from tilefold.base.errors import TilefoldError

from tilefold import cute
from tilefold.cute import experimental as ext
from tilefold.cute import utils
from tilefold.cute.nvgpu import tcgen05
from tilefold.cute.utils import blackwell_helpers as sm100

TILE = (128, 64, 64)
F16, F32 = cute.Float16, cute.Float32
K_MAJOR, KIND = tcgen05.OperandMajorMode.K, ext.OperationTypeEnum
MMA, LOAD, THREADS = 4, 5, 192
ROLES: tuple[Any, ...] = ("A", "B", "C")
NO_MMA: Any = None


@ext.kernel
def multiply(mA: cute.Tensor, mB: cute.Tensor, mD: cute.Tensor, mE: cute.Tensor) -> None:
    t, _, _ = cute.arch.thread_idx()
    m, n, _ = cute.arch.block_idx()
    warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
    mma = sm100.make_trivial_tiled_mma(F16, F16, K_MAJOR, K_MAJOR, F32, tcgen05.CtaGroup.ONE, TILE[:2])
    gA = cute.zipped_divide(mA, (TILE[0], TILE[2]))[(None, None), (m, None)]
    gB = cute.zipped_divide(mB, (TILE[1], TILE[2]))[(None, None), (n, None)]
    gD, gE = (cute.zipped_divide(x, TILE[:2])[(None, None), (m, n)] for x in (mD, mE))
    row = utils.LayoutEnum.ROW_MAJOR
    epi_tile = sm100.compute_epilogue_tile_shape(TILE, False, row, F16)
    smem = cute.AddressSpace.smem
    sA = ext.allocate(F16, smem, sm100.make_smem_layout_a(mma, TILE, F16, 2), alignment=1024)
    sB = ext.allocate(F16, smem, sm100.make_smem_layout_b(mma, TILE, F16, 2), alignment=1024)
    sD = ext.allocate(F16, smem, sm100.make_smem_layout_epi(F16, row, epi_tile, 2), alignment=1024)
    acc = ext.allocate(F32, cute.AddressSpace.tmem, ext.make_tmem_layout_acc(mma, TILE, 1))
    load = sm100.get_tmem_load_op(TILE, row, F16, F32, epi_tile, False)
    t2r = tcgen05.make_tmem_copy(load, cute.zipped_divide(acc, (epi_tile, 1))[((None, None), 0), 0])
    tiles = cute.flat_divide(gD, epi_tile)
    laid = ext.make_t2r_rmem_layout(t2r, tiles, t)
    rAcc = ext.allocate(F32, cute.AddressSpace.rmem, laid)
    rD = ext.allocate(F16, cute.AddressSpace.rmem, laid)
    main = ext.TMAToUMMAPipeline.create(num_stages=2, mma_operation_type=KIND.SM100_MMA_1SM_SS)
    sums = ext.UMMAtoAsyncPipeline.create(num_stages=1, consumer=KIND.SM100_COPY_T2R, consumer_arv_count=128)
    stores = ext.TMAStorePipeline(stages=2, arv_count=128, barrier_id=1, tma_warp_id=0)
    count = cute.size(gA, mode=[2])
    if warp == LOAD:
        for k in range(count):
            token, at = main.producer_acquire_and_get_stage()
            for tensor, to, operand in ((gA, sA, ROLES[0]), (gB, sB, ROLES[1])):
                values = ext.get_cta_v_map_ab(tensor, TILE, mma, operand)
                bar = ext.get_mbarrier(token)
                ext.tma_load(tensor[None, None, k], to[None, None, None, at], bar, cta_v_map=values)
            main.producer_commit()
            main.producer_state = ext.pipeline_advance_iterator(main.raw_pipeline, main.producer_state)
    if warp == MMA:
        _, at = sums.producer_acquire_and_get_stage()
        atom = cute.make_mma_atom(mma.op)
        atom.set(tcgen05.Field.ACCUMULATE, False)
        for _ in range(count):
            _, stage = main.consumer_wait_and_get_stage()
            for k in cute.range_constexpr(cute.size(sA, mode=[2])):
                a, b = (cute.append_ones(s[None, None, None, stage][None, None, k], up_to_rank=3) for s in (sA, sB))
                ext.dot(atom, a, b, acc[None, None, None, at])
                atom.set(tcgen05.Field.ACCUMULATE, True)
            main.consumer_release_and_advance()
        sums.producer_commit_and_advance()
    if warp < MMA:
        _, at = sums.consumer_wait_and_get_stage()
        parts = cute.flat_divide(acc[(None, None), 0, 0, at], epi_tile)
        r2s = cute.make_tiled_copy_D(cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), F16), t2r)
        for i in cute.range_constexpr(cute.size(parts, mode=[3])):
            ext.partition_and_copy(t2r.get_slice(t), parts[None, None, 0, i], rAcc)
            cute.arch.fence_view_async_tmem_load()
            rD.store(rAcc.load().to(F16))
            if cute.const_expr(i == 0):
                ext.partition_and_copy(t2r.get_slice(t), rD, cute.flat_divide(gE, epi_tile)[None, None, 0, 0])
            stores.acquire_sync()
            ext.partition_and_copy(r2s.get_slice(t), rD, sD[None, None, stores.get_index()])
            stores.commit_sync()
            if warp == 0:
                values = ext.get_cta_v_map_c(mD, epi_tile)
                ext.tma_store(sD[None, None, stores.get_index()], tiles[None, None, 0, i], cta_v_map=values)
            stores.release_advance()
        stores.tail()
        sums.consumer_release_and_advance()


def test_a_product_of_views() -> None:
    chance = np.random.default_rng(7)
    a, b = (chance.integers(-2, 3, (extent, 192)).astype(np.float16) for extent in (128, 64))
    d, part = np.zeros((128, 64), np.float16), np.zeros((120, 28), np.float16)
    multiply(a, b, d, part).launch(grid=1, block=THREADS, device="sim")
    assert np.array_equal(d, a.astype(np.float32) @ b.astype(np.float32).T)
    assert np.array_equal(part, d[:120, :28])


def test_operands_and_memories_that_are_not_there() -> None:
    @cute.kernel
    def wrong(A: cute.Tensor, what: cute.Constexpr) -> None:
        if what == "operand":
            ext.get_cta_v_map_ab(A, TILE, NO_MMA, ROLES[2])
        ext.allocate(F16, cute.AddressSpace.gmem, 8)

    for what, said in (("operand", "loads no operand 'C'"), ("memory", "allocates no memory in")):
        with pytest.raises(TilefoldError, match=said):
            wrong(np.zeros(1, np.float16), what).launch(grid=1, block=1, device="sim")
