# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`utils.gemm.sm100`: a tile of tensor memory comes to global memory, through shared memory or directly."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tilefold.base.errors import TilefoldError

import tilefold.cutlass as cutlass
from tilefold import cute
from tilefold.cute import pipeline, utils
from tilefold.cute.nvgpu import cpasync, tcgen05
from tilefold.cute.utils import blackwell_helpers as sm100
from tilefold.cute.utils.gemm.sm100 import epilogue, epilogue_tma_store, transform_partitioned_tensor_layout

F16, F32 = cute.Float16, cute.Float32
M, N, COLUMNS = 128, 64, 48
"""The tile, and the columns of the tensor that stores with coordinates are to keep within."""
GROUP, THREAD = pipeline.CooperativeGroup, pipeline.Agent.Thread


@cute.struct
class Storage:
    summed: cute.struct.MemRange[cute.Int64, 2]
    none: cute.struct.MemRange[cute.Int64, 0]
    slot: cute.Int32


@cute.kernel
def store_tile(
    mma: cute.TiledMma,
    gemm: cute.Constexpr,
    atom: Any,
    mapped: Any,
    mC: cute.Tensor,
    mD: cute.Tensor,
    laid: Any,
    parts: cute.Constexpr,
) -> None:
    t, _, _ = cute.arch.thread_idx()
    warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
    smem = utils.SmemAllocator()
    storage = smem.allocate(Storage)
    assert storage.none.data_ptr() is None
    sC = smem.allocate_tensor(F16, laid.outer, 128, laid.inner)
    tmem = utils.TmemAllocator(storage.slot, barrier_for_retrieve=pipeline.NamedBarrier(2, M), arch="sm_100")
    sums = pipeline.PipelineUmmaAsync.create(
        num_stages=1, producer_group=GROUP(THREAD), consumer_group=GROUP(THREAD, 4),
        barrier_storage=storage.summed.data_ptr(),
    )  # fmt: skip
    tmem.allocate(N)
    tmem.relinquish_alloc_permit()
    tmem.wait_for_alloc()
    pointer = tmem.retrieve_ptr(F32)
    fake = mma.make_fragment_C(cute.append(mma.partition_shape_C((M, N)), 1))
    acc = cute.make_tensor(pointer, fake.layout)
    thr = mma.get_slice(0)
    tensors: list[Any] = [mapped, mD, cute.make_identity_tensor((M, N, 1))]
    tCgC, tCgD, coords = (thr.partition_C(cute.local_tile(x, (M, N), (None, None, None))) for x in tensors)
    whole = acc[(None, None), 0, 0, 0]
    fill = tcgen05.make_tmem_copy(cute.make_copy_atom(tcgen05.St32x32bOp(tcgen05.Repetition.x32), F32), whole)
    part = fill.get_slice(t)
    places = part.partition_S(coords[(None, None), 0, 0, 0, 0, 0])
    numbers = cute.make_rmem_tensor(places.shape, F32)
    for i in cute.range_constexpr(cute.size(numbers)):
        numbers[i] = F32(places[i][0] * 3 + places[i][1] * 5)
    cute.copy(fill, numbers, part.partition_D(whole))
    cute.arch.fence_view_async_tmem_store()
    filling = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, 1)
    reading = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, 1)
    stores = pipeline.PipelineTmaStore.create(num_stages=2, producer_group=GROUP(THREAD, M))
    for turn in cute.range_constexpr(2):
        if warp == 0:
            sums.producer_acquire(filling)
            sums.producer_commit(filling)
        filling.advance()
        if cute.const_expr(turn == 0):
            reading = epilogue_tma_store(
                gemm, t, warp, atom, acc, sC, tCgC, parts, 0, lambda x: x + F16(1.0), (0, 0, 0), reading, sums, stores
            )
        else:
            reading = epilogue(
                gemm, t, acc, tCgD, parts, lambda x: x, (0, 0, 0), reading, sums, tCcC_base=coords, mC_mnl=mC
            )
    stores.producer_tail()
    cute.arch.barrier()
    tmem.free(pointer)


@cute.jit
def run(C: cute.Tensor, D: cute.Tensor) -> None:
    k_major = tcgen05.OperandMajorMode("k")
    mma = sm100.make_trivial_tiled_mma(F16, F16, k_major, k_major, F32, tcgen05.CtaGroup.ONE, (M, N))
    layout = utils.LayoutEnum.ROW_MAJOR
    gemm = SimpleNamespace(
        cta_tile_shape_mnk=(M, N, 64), use_2cta_instrs=False, c_layout=layout, c_dtype=F16, acc_dtype=F32,
        epilogue_warp_id=(0, 1, 2, 3), epilog_sync_bar_id=1, num_c_stage=2,
    )  # fmt: skip
    parts = sm100.compute_epilogue_tile_shape((M, N, 64), False, layout, F16)
    laid = sm100.make_smem_layout_epi(F16, layout, parts, 2)
    one = cute.slice_(laid, (None, None, 0))
    atom, mapped = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileS2GOp(), C, one, parts)
    inside = cute.make_tensor(D.iterator, cute.make_layout((M, COLUMNS, 1), stride=(N, 1, M * N)))
    store_tile(mma, gemm, atom, mapped, inside, D, laid, parts).launch(grid=(1, 1, 1), block=M)


def test_a_tile_is_stored_by_tma_copies_and_directly() -> None:
    c, d = np.zeros((2, M, N, 1), np.float16)
    run(c, d)
    expected = (np.arange(M)[:, None] * 3 + np.arange(N) * 5).astype(np.float16)[..., None]
    np.testing.assert_array_equal(c, expected + np.float16(1))
    expected[:, COLUMNS:] = 0
    np.testing.assert_array_equal(d, expected)


def test_a_part_becomes_a_matrix() -> None:
    part = cute.make_layout(((64, 32), 2, 3, 5), stride=((1, 64), 2048, 4096, 0))
    assert str(transform_partitioned_tensor_layout(part)) == "((64,2),(32,3),5):((1,2048),(64,4096),0)"
    with pytest.raises(TilefoldError, match="is not a partition"):
        _ = transform_partitioned_tensor_layout(cute.make_layout((64, 32)))


def test_numbers_outside_of_kernels_convert() -> None:
    assert cutlass.Float32(42).to(cutlass.Int32) == 42
