# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""D = A @ B^T on Blackwell (sm_100a) in CuTe's words: TMA copies, multiplications in tensor memory, by one block or
by a pair of blocks, which take over the tiles of blocks that have not begun. No GPU of this kind has run it;
docs/blackwell.md leads to it.

A block, or a pair, makes tiles of 128 or 256 rows. Warp 4 loads tiles of A and B to stages of shared memory, a thread
of warp 5 multiplies them into one of two accumulators in tensor memory, of a pair that of the first block, and warps 0
to 3 store the other one: each reaches a quarter of the lanes. Warp 6 of the first block asks for the next tile.
"""

from dataclasses import dataclass
from typing import Any

from tilefold import cute
from tilefold.cute import pipeline, utils
from tilefold.cute.nvgpu import cpasync, tcgen05
from tilefold.cute.typing import Int, NumericMeta
from tilefold.cute.utils import blackwell_helpers as sm100

from ..arguments import Array, refuse
from ..replay import Launch, Launches
from ..sm80 import gemm as by_warps

EPILOGUE, LOADS, MULTIPLIES, ASKS, WARPS = 4, 4, 5, 6, 7
"""The warps that store, the numbers of the others, and their count."""
ACCUMULATORS = 2
"""One is multiplied into while the other is stored."""
K_BYTES = 128
"""The bytes of K of a stage: the widest swizzle."""


@dataclass(frozen=True)
class Config:
    """The tile and the stages, for elements of this many bits: `blocks` is 2 for a pair, which makes 256 rows."""

    bits: int = 16
    columns: int = 128
    blocks: int = 1
    stages: int = 3

    @property
    def tile(self) -> tuple[int, int, int]:
        """M, N and K of a tile."""
        return 128 * self.blocks, self.columns, 8 * K_BYTES // self.bits

    def mma(self, dtype: NumericMeta) -> Any:
        """The tiled MMA for elements of a type, whose "threads" are blocks."""
        k, group = cute.nvgpu.OperandMajorMode.K, tcgen05.CtaGroup(self.blocks)
        return sm100.make_trivial_tiled_mma(dtype, dtype, k, k, sum_type(dtype), group, self.tile[:2])


def sum_type(dtype: NumericMeta) -> Any:
    """The type of the accumulators."""
    return cute.Int32 if dtype.kind == "int" else cute.Float32


@cute.kernel
def gemm_kernel(A: cute.Tensor, B: cute.Tensor, D: cute.Tensor, config: cute.Constexpr) -> None:
    dtype = cute.TFloat32 if A.element_type == cute.Float32 else A.element_type
    mma, tile, wide = config.mma(dtype), config.tile, sum_type(dtype)
    warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
    rank = cute.arch.block_idx()[0] % config.blocks
    cluster = cute.tiled_divide(cute.make_layout((config.blocks, 1, 1)), (mma.thr_id.shape,))

    # shared memory and TMA copies, by the instructions of the tiled MMA
    a_layout = sm100.make_smem_layout_a(mma, tile, dtype, config.stages)
    b_layout = sm100.make_smem_layout_b(mma, tile, dtype, config.stages)
    sA, sB = cute.make_smem_tensor(a_layout, dtype, 1024), cute.make_smem_tensor(b_layout, dtype, 1024)
    load = cpasync.CopyBulkTensorTileG2SOp(tcgen05.CtaGroup(config.blocks))
    one_a, one_b = (cute.select(layout, mode=[0, 1, 2]) for layout in (a_layout, b_layout))
    a_map, a_all = cute.nvgpu.make_tiled_tma_atom_A(load, A, one_a, tile, mma, cluster.shape, internal_type=dtype)
    b_map, b_all = cute.nvgpu.make_tiled_tma_atom_B(load, B, one_b, tile, mma, cluster.shape, internal_type=dtype)
    bytes = config.blocks * (cute.size_in_bytes(dtype, one_a) + cute.size_in_bytes(dtype, one_b))

    own = mma.get_slice(rank)
    gA = own.partition_A(cute.local_tile(a_all, tile, (None, None, None), proj=(1, None, 1)))
    gB = own.partition_B(cute.local_tile(b_all, tile, (None, None, None), proj=(None, 1, 1)))
    gD = own.partition_C(cute.local_tile(D, tile, (None, None, None), proj=(1, 1, None)))
    alone = cute.make_layout(1)
    tAsA, tAgA = cpasync.tma_partition(a_map, 0, alone, cute.group_modes(sA, 0, 3), cute.group_modes(gA, 0, 3))
    tBsB, tBgB = cpasync.tma_partition(b_map, 0, alone, cute.group_modes(sB, 0, 3), cute.group_modes(gB, 0, 3))

    # the barriers of stages, accumulators and answers; tensor memory
    one = pipeline.CooperativeGroup(pipeline.Agent.Thread)
    storing = pipeline.CooperativeGroup(pipeline.Agent.Thread, 32 * EPILOGUE * config.blocks)
    reading = pipeline.CooperativeGroup(pipeline.Agent.Thread, 32 * (1 + (WARPS - 1) * config.blocks))
    loads, loaded = pipeline.PipelineTmaUmma.create(
        num_stages=config.stages, producer_group=one, consumer_group=one, tx_count=bytes, cta_layout_vmnk=cluster
    ).make_participants()
    sums, summed = pipeline.PipelineUmmaAsync.create(
        num_stages=ACCUMULATORS, producer_group=one, consumer_group=storing, cta_layout_vmnk=cluster
    ).make_participants()
    asks, answers = pipeline.PipelineClcFetchAsync.create(
        num_stages=1, producer_group=one, consumer_group=reading, tx_count=16, cta_layout_vmnk=cluster
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
    shape = mma.make_fragment_C(cute.append(mma.partition_shape_C(tile[:2]), ACCUMULATORS)).layout
    count = cute.size(gA, mode=[4])

    tiles = utils.ClcDynamicPersistentTileScheduler.create(
        utils.ClcDynamicPersistentTileSchedulerParams(cute.arch.grid_dim(), (config.blocks, 1, 1)),
        cute.arch.block_idx(), cute.arch.grid_dim(), cute.make_smem_tensor(4, cute.Int32, 16).iterator,
    )  # fmt: skip
    work = tiles.initial_work_tile_info()
    if warp == LOADS:
        while work.is_valid_tile:
            m, n, _ = work.tile_idx
            for k in cute.range(count):
                stage = loads.acquire_and_advance()
                cute.copy(a_map, tAgA[None, m // config.blocks, k], tAsA[None, stage.index], tma_bar_ptr=stage.barrier)
                cute.copy(b_map, tBgB[None, n, k], tBsB[None, stage.index], tma_bar_ptr=stage.barrier)
            work = next_tile(tiles, answers)
        loads.tail()
    elif warp == MULTIPLIES:
        tmem.wait_for_alloc()
        acc = cute.make_tensor(tmem.retrieve_ptr(wide), shape)
        tCrA, tCrB = mma.make_fragment_A(sA), mma.make_fragment_B(sB)
        while work.is_valid_tile:
            if rank == 0:
                room = sums.acquire_and_advance()
                into = acc[None, None, None, room.index]
                mma.set(tcgen05.Field.ACCUMULATE, False)
                for _ in cute.range(count):
                    stage = loaded.wait_and_advance()
                    for k in cute.range_constexpr(cute.size(tCrA, mode=[2])):
                        cute.gemm(mma, into, tCrA[None, None, k, stage.index], tCrB[None, None, k, stage.index], into)
                        mma.set(tcgen05.Field.ACCUMULATE, True)
                    stage.release()
                room.commit()
            work = next_tile(tiles, answers)
        sums.tail()
    elif warp == ASKS:
        if rank == 0:
            while work.is_valid_tile:
                answer = asks.acquire_and_advance()
                tiles.advance_to_next_work(answer.barrier)
                work = next_tile(tiles, answers)
            asks.tail()
    else:
        tmem.allocate(max(32, ACCUMULATORS * config.columns))
        tmem.relinquish_alloc_permit()
        tmem.wait_for_alloc()
        start = tmem.retrieve_ptr(wide)
        acc = cute.make_tensor(start, shape)
        atom = cute.make_copy_atom(tcgen05.Ld32x32bOp(tcgen05.Repetition.x32), wide)
        out = tcgen05.make_tmem_copy(atom, acc[None, None, None, 0])
        mine = out.get_slice(cute.arch.thread_idx()[0])
        while work.is_valid_tile:
            m, n, _ = work.tile_idx
            tDgD = mine.partition_D(gD[None, None, None, m // config.blocks, n])
            complete = summed.wait_and_advance()
            held = cute.make_rmem_tensor(tDgD.shape, wide)
            cute.copy(out, mine.partition_S(acc[None, None, None, complete.index]), held)
            cute.arch.fence_view_async_tmem_load()
            complete.release()
            result = cute.make_rmem_tensor(tDgD.shape, D.element_type)
            result.store(held.load().to(D.element_type))
            cute.autovec_copy(result, tDgD)
            work = next_tile(tiles, answers)
        stored.arrive_and_wait()  # all four warps have loaded their lanes
        tmem.free(start)
    if config.blocks == 2:  # neither block ends while the other one may still reach its shared memory
        cute.arch.cluster_arrive()
        cute.arch.cluster_wait()


@cute.jit
def next_tile(tiles: Int, answers: Any) -> Any:
    """The tile that the answer to the request names."""
    answer = answers.wait_and_advance()
    work = tiles.get_current_work()
    answer.release()
    return work


def chosen_config(m: int, n: int, k: int, bits: int) -> Config | None:
    """The configuration for whole tiles of a product, as large as possible; None where there is none."""
    if m % 128 or n % 64 or not m * n * k:
        return None
    columns = next(columns for columns in (256, 128, 64) if n % columns == 0)
    config = Config(bits, columns, 2 if m % 256 == 0 else 1)
    return None if k % config.tile[2] else config


def launch_of(A: Array, B: object, D: Array, config: Config) -> Launch:
    """D = A @ B^T, by a block for each tile, of which those that begin take over others. LaunchError (E3106) unless M
    and N are multiples of the tile's, and K of the elements in 128 bytes.
    """
    extents = *D.shape, A.shape[1]
    if any(extent % each for extent, each in zip(extents, config.tile, strict=True)):
        refuse("gemm", f"M, N and K are {extents} for tiles of {config.tile}", "whole tiles")
    grid = (extents[0] // config.tile[0] * config.blocks, extents[1] // config.tile[1], 1)
    options = {} if config.blocks == 1 else {"cluster": (config.blocks, 1, 1)}
    return Launch(gemm_kernel, (A, B, D, config), grid, 32 * WARPS, options)


def gemm(A: Array, B: object, D: Array, config: Config | None = None, device: str = "auto", **options: object) -> None:
    """D = A @ B^T of whole tiles; see `launch_of`."""
    bits = 8 * A.itemsize
    config = config or chosen_config(D.shape[0], D.shape[1], A.shape[1], bits) or Config(bits)
    launch_of(A, B, D, config).run(A, device, **options)


def product(
    d: Array, a: Array, b: Array, by_rows: bool, blocks: int, bias: Any, activation: Any, scale_m: Any,
    scale_n: Any, gate: Any, residual: Any, autotune: bool = False, accurate: bool = False,
) -> Launches:  # fmt: skip
    """D, by a block or a pair for each tile. The errors of the kernel for sm_80, which takes all but plain products
    of whole tiles. There is one configuration, so nothing to measure. Sums in
    tensor memory are as accurate as f32 in any case.
    """
    more = bias, activation, scale_m, scale_n, gate, residual
    is_plain = by_rows and all(part is None for part in more)
    config = chosen_config(d.shape[0], d.shape[1], a.shape[1], 8 * a.itemsize) if is_plain else None
    if config is None:
        yield from by_warps.product(d, a, b, by_rows, blocks, *more, autotune, accurate)
    else:
        yield launch_of(a, b, d, config)
