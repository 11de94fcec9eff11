# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""D = A @ B^T on Blackwell (sm_100a) in CuTe's words: tensor copies, multiplications in tensor memory, by one block or
by a pair of blocks. No GPU of this kind has run it; docs/blackwell.md leads to it.

A block, or a pair, makes a tile of 128 or 256 rows. Warp 4 loads tiles of A and B to stages of shared memory, a thread
of warp 5 multiplies them into tensor memory, of a pair that of the first block, and warps 0 to 3 store the result: each
reaches a quarter of the lanes.

    python examples/python/gemm_sm100.py
    python examples/python/gemm_sm100.py --pair 2 --m 512 --n 256 --dtype e4m3
"""

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
from common import check, chosen, parser, place

from tilefold import cute
from tilefold.cute import pipeline, utils
from tilefold.cute.nvgpu import cpasync, tcgen05
from tilefold.cute.utils import blackwell_helpers as sm100

EPILOGUE, LOADS, MULTIPLIES = 4, 4, 5
"""The warps that store, and the numbers of the others."""
K_BYTES = 128
"""The bytes of K of a stage: the widest swizzle."""
TYPES = {
    "f16": (cute.Float16, np.float16), "bf16": (cute.BFloat16, ml_dtypes.bfloat16),
    "tf32": (cute.TFloat32, np.float32), "e4m3": (cute.Float8E4M3FN, ml_dtypes.float8_e4m3fn),
    "s8": (cute.Int8, np.int8),
}  # fmt: skip


@dataclass(frozen=True)
class Config:
    """The tile and the stages: `blocks` is 2 for a pair, which makes 256 rows."""

    dtype: str = "f16"
    columns: int = 128
    blocks: int = 1
    stages: int = 3

    @property
    def tile(self) -> tuple[int, int, int]:
        """M, N and K of a tile."""
        return 128 * self.blocks, self.columns, 8 * K_BYTES // TYPES[self.dtype][0].bits

    def mma(self) -> Any:
        """The tiled MMA, whose "threads" are blocks."""
        dtype, k = TYPES[self.dtype][0], cute.nvgpu.OperandMajorMode.K
        sums = cute.Int32 if self.dtype == "s8" else cute.Float32
        group = tcgen05.CtaGroup(self.blocks)
        return sm100.make_trivial_tiled_mma(dtype, dtype, k, k, sums, group, self.tile[:2])


@cute.kernel
def gemm_kernel(A: cute.Tensor, B: cute.Tensor, D: cute.Tensor, config: cute.Constexpr) -> None:
    mma, tile = config.mma(), config.tile
    dtype = TYPES[config.dtype][0]
    warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
    block, column, _ = cute.arch.block_idx()
    rank, row = block % config.blocks, block // config.blocks
    cluster = cute.tiled_divide(cute.make_layout((config.blocks, 1, 1)), (mma.thr_id.shape,))

    # shared memory and tensor copies, by the instructions of the tiled MMA
    a_layout = sm100.make_smem_layout_a(mma, tile, dtype, config.stages)
    b_layout = sm100.make_smem_layout_b(mma, tile, dtype, config.stages)
    sA, sB = cute.make_smem_tensor(a_layout, dtype, 1024), cute.make_smem_tensor(b_layout, dtype, 1024)
    load = cpasync.CopyBulkTensorTileG2SOp(tcgen05.CtaGroup(config.blocks))
    one_a, one_b = (cute.select(layout, mode=[0, 1, 2]) for layout in (a_layout, b_layout))
    a_map, a_all = cute.nvgpu.make_tiled_tma_atom_A(load, A, one_a, tile, mma, cluster.shape, internal_type=dtype)
    b_map, b_all = cute.nvgpu.make_tiled_tma_atom_B(load, B, one_b, tile, mma, cluster.shape, internal_type=dtype)
    bytes = config.blocks * (cute.size_in_bytes(dtype, one_a) + cute.size_in_bytes(dtype, one_b))

    own = mma.get_slice(rank)
    gA = own.partition_A(cute.local_tile(a_all, tile, (row, column, None), proj=(1, None, 1)))
    gB = own.partition_B(cute.local_tile(b_all, tile, (row, column, None), proj=(None, 1, 1)))
    gD = own.partition_C(cute.local_tile(D, tile, (row, column, None), proj=(1, 1, None)))
    alone = cute.make_layout(1)
    tAsA, tAgA = cpasync.tma_partition(a_map, 0, alone, cute.group_modes(sA, 0, 3), cute.group_modes(gA, 0, 3))
    tBsB, tBgB = cpasync.tma_partition(b_map, 0, alone, cute.group_modes(sB, 0, 3), cute.group_modes(gB, 0, 3))

    # the barriers of stages and of the accumulator; tensor memory
    one = pipeline.CooperativeGroup(pipeline.Agent.Thread)
    many = pipeline.CooperativeGroup(pipeline.Agent.Thread, 32 * EPILOGUE * config.blocks)
    loads, loaded = pipeline.PipelineTmaUmma.create(
        num_stages=config.stages, producer_group=one, consumer_group=one, tx_count=bytes, cta_layout_vmnk=cluster
    ).make_participants()
    sums, summed = pipeline.PipelineUmmaAsync.create(
        num_stages=1, producer_group=one, consumer_group=many, cta_layout_vmnk=cluster
    ).make_participants()
    meet, stored = pipeline.NamedBarrier(1, 32 * (EPILOGUE + 1)), pipeline.NamedBarrier(2, 32 * EPILOGUE)
    slot, free = cute.make_smem_tensor(1, cute.Int32), cute.make_smem_tensor(1, cute.Int64)
    tmem = utils.TmemAllocator(
        slot.iterator, meet, is_two_cta=config.blocks == 2,
        two_cta_tmem_dealloc_mbar_ptr=free.iterator,
    )  # fmt: skip
    if config.blocks == 2:
        cute.arch.cluster_arrive()
        cute.arch.cluster_wait()
    shape = mma.make_fragment_C(mma.partition_shape_C(tile[:2])).layout
    count = cute.size(gA, mode=[3])

    if warp == LOADS:
        for k in cute.range(count):
            stage = loads.acquire_and_advance()
            cute.copy(a_map, tAgA[None, k], tAsA[None, stage.index], tma_bar_ptr=stage.barrier)
            cute.copy(b_map, tBgB[None, k], tBsB[None, stage.index], tma_bar_ptr=stage.barrier)
        loads.tail()
    elif warp == MULTIPLIES:
        tmem.wait_for_alloc()
        acc = cute.make_tensor(tmem.retrieve_ptr(mma_type(config)), shape)
        tCrA, tCrB = mma.make_fragment_A(sA), mma.make_fragment_B(sB)
        if rank == 0:
            room = sums.acquire_and_advance()
            for _ in cute.range(count):
                stage = loaded.wait_and_advance()
                for k in cute.range_constexpr(cute.size(tCrA, mode=[2])):
                    cute.gemm(mma, acc, tCrA[None, None, k, stage.index], tCrB[None, None, k, stage.index], acc)
                    mma.set(tcgen05.Field.ACCUMULATE, True)
                stage.release()
            room.commit()
    else:
        tmem.allocate(max(32, config.columns))
        tmem.relinquish_alloc_permit()
        tmem.wait_for_alloc()
        start = tmem.retrieve_ptr(mma_type(config))
        acc = cute.make_tensor(start, shape)
        atom = cute.make_copy_atom(tcgen05.Ld32x32bOp(tcgen05.Repetition.x32), mma_type(config))
        out = tcgen05.make_tmem_copy(atom, acc)
        mine = out.get_slice(cute.arch.thread_idx()[0])
        tDtC, tDgD = mine.partition_S(acc), mine.partition_D(gD)
        complete = summed.wait_and_advance()
        held = cute.make_rmem_tensor(tDgD.shape, mma_type(config))
        cute.copy(out, tDtC, held)
        cute.arch.fence_view_async_tmem_load()
        result = cute.make_rmem_tensor(tDgD.shape, D.element_type)
        result.store(held.load().to(D.element_type))
        cute.autovec_copy(result, tDgD)
        complete.release()
        stored.arrive_and_wait()  # all four warps have loaded their lanes
        tmem.free(start)
    if config.blocks == 2:  # neither block ends while the other one may still reach its shared memory
        cute.arch.cluster_arrive()
        cute.arch.cluster_wait()


def mma_type(config: Config) -> Any:
    """The type of the accumulators."""
    return cute.Int32 if config.dtype == "s8" else cute.Float32


def gemm(A: Any, B: Any, D: Any, config: Config = Config(), device: str = "auto", **options: Any) -> None:
    """D = A @ B^T. M and N are multiples of the tile's, K of the elements in 128 bytes."""
    m, n, _ = config.tile
    grid = (D.shape[0] // m * config.blocks, D.shape[1] // n, 1)
    cluster = None if config.blocks == 1 else (config.blocks, 1, 1)
    gemm_kernel(A, B, D, config).launch(grid, 32 * (EPILOGUE + 2), cluster=cluster, device=device, **options)


def main(arguments: list[str] | None = None) -> None:
    made = parser("D = A @ B^T on tensor cores of Blackwell", m=256, n=128, k=128, pair=1, columns=64)
    made.add_argument("--dtype", choices=TYPES, default="f16")
    options = made.parse_args(arguments)
    config = Config(options.dtype, options.columns, options.pair)
    if any(extent % each for extent, each in zip((options.m, options.n, options.k), config.tile, strict=True)):
        raise SystemExit(f"M, N and K are multiples of {', '.join(map(str, config.tile))}")
    device, type = chosen(options.device), TYPES[options.dtype][1]
    chance = np.random.default_rng(0)
    hA, hB = (chance.integers(-4, 5, (rows, options.k)).astype(type) for rows in (options.m, options.n))
    of_result = np.int32 if options.dtype == "s8" else np.float32
    A, B, D = place(device, hA, hB, np.empty((options.m, options.n), of_result))
    gemm(A, B, D, config, device)
    check("D", D, hA.astype(of_result) @ hB.astype(of_result).T)


if __name__ == "__main__":
    main()
