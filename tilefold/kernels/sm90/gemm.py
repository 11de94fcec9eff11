# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""D = act(A @ B^T + bias) on Hopper (sm_90a): TMA copies, multiplications by warpgroups, persistent blocks.

A has M x K elements, B has N x K, D has M x N; a third mode of all three is the products of a batch. A and B are f16,
bf16, f32 (multiplied as tf32), fp8 or integers of 8 bits, and D has 16 or 32 bits. The second mode is contiguous; of A
and B with 16 bits it may be the first one.

Of a block's warpgroups the first is the producer: one of its warps loads tiles of A and B to stages of shared memory by
TMA copies. The others are consumers: they multiply by wgmma, straight from shared memory, and accumulate in
registers. They either share a tile (cooperative), or take turns (ping-pong), so that one multiplies while the other
writes its tile. A block goes through several tiles, and the producer is always some stages ahead.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tilefold import cute
from tilefold.cute import pipeline, utils
from tilefold.cute.nvgpu import cpasync, warpgroup
from tilefold.cute.typing import Int, NumericMeta
from tilefold.cute.utils import hopper_helpers

from ..arguments import Array, refuse
from .gemm_model import ranked
from .gemm_shared_k import Exchange, tile_scheduler
from .gemm_skinny import skinny_gemm
from .parts import (
    ROWS,
    WARPGROUP,
    Config,
    accumulated,
    load_strips,
    pipe_of,
    stages_of,
    sync_consumer,
    tiles_of,
    warpgroup_mma,
)
from .skinny_model import is_skinny

Activation = Callable[[cute.TensorSSA], cute.TensorSSA]
"""The function of the sums that is written."""


MANY = 24
"""So many tiles for each block are many."""


def chosen_config(
    m: int, n: int, k: int, blocks: int, itemsize: int = 2, layers: int = 1, shares_k: bool = False
) -> Config:
    """The fastest configuration. A model of the time (gemm_model.py) chooses it for 16-bit elements.

    For others, consumers take turns, unless there are too few tiles for all blocks, or one warpgroup cannot keep the
    tensor cores busy. Where tiles reach beyond the edges, rows seldom begin at lines of the L2 cache, so that loads
    cost more there: blocks share them.
    """
    tiles = -(-m // 128) * -(-n // 128) * layers
    if itemsize == 2:
        return ranked(m, n, k, blocks, layers, 1, shares_k)[0]
    if tiles < blocks:
        return Config(n=64, stages=8, takes_turns=False)
    if itemsize == 4:
        return Config(n=256, stages=4, takes_turns=False)
    if m % 128 or n % 128:
        return Config(cluster=(1, 2), group=16)
    return Config(n=192, stages=4) if tiles >= MANY * blocks else Config()


def by_columns(part: object) -> Any:
    """A thread's part of 64 rows of D, ((2,2,N),1,1), by rows and columns: (2,(2,N))."""
    return cute.composition(part, cute.make_layout((2, (2, cute.size(part) // 4)), stride=(2, (1, 4))))


def columns_of_chunk(n: int, dtype: NumericMeta) -> int:
    """The columns of which a tile of `n` has a multiple: those of 128 bytes, which is the widest that is swizzled, or
    of 64 or 32 where a tile has a part of them over.
    """
    return math.gcd(n, 1024 // dtype.bits)


@cute.jit
def write(store: Any, whole: Any, columns: Int, shared: Any, buffer: Any, row: Int, column: Int, layer: Int):
    """A thread begins to store a buffer of 64 rows and this many columns of D: the rows with a number, from a column
    on, where D has such.
    """
    shape = ROWS, columns
    tDsD, tDgD = tiles_of(store, cute.domain_offset((0, column, 0), whole), shape, shared)
    if row < cute.size(tDgD, 1) and column < whole.shape[1]:
        cute.copy(store, tDsD[None, buffer], tDgD[None, row, 0, layer])


@cute.kernel(min_blocks=1)
def gemm_kernel(
    mA: cute.Tensor,
    mB: cute.Tensor,
    mD: cute.Tensor,
    config: cute.Constexpr[Config],
    bias: cute.Tensor | None = None,
    activation: cute.Constexpr[Activation | None] = None,
    scale_m: cute.Tensor | None = None,
    scale_n: cute.Tensor | None = None,
    gate: cute.Tensor | None = None,
    residual: cute.Tensor | None = None,
    parts: cute.Tensor | None = None,
    ready: cute.Tensor | None = None,
):
    mA, mB, mD = cute.append(mA, up_to_rank=3), cute.append(mB, up_to_rank=3), cute.append(mD, up_to_rank=3)
    if config.swaps:
        mA, mB, mD, scale_m, scale_n = mB, mA, cute.select(mD, [1, 0, 2]), scale_n, scale_m
        gate, residual = (None if matrix is None else cute.select(matrix, [1, 0]) for matrix in (gate, residual))
    t = cute.arch.thread_idx()[0]
    warp = cute.arch.make_warp_uniform(t // 32)
    group = cute.arch.make_warp_uniform(t // WARPGROUP)
    cluster = cute.make_layout((*config.cluster, 1))
    rank = cute.arch.block_in_cluster_idx() if cute.size(cluster) > 1 else (0, 0, 0)
    cute.arch.griddepcontrol_launch_dependents()

    # shared memory, and the maps of the matrices that TMA copies move
    type_a, type_d = mA.element_type, mD.element_type
    depth, columns = 1024 // type_a.bits, columns_of_chunk(config.n, type_d)  # elements of A or B in 128 bytes
    wide = 1024 // type_d.bits  # the columns that a consumer stores at a time
    major_d = utils.LayoutEnum.COL_MAJOR if config.swaps else utils.LayoutEnum.ROW_MAJOR
    buffers, stored = config.buffers * config.consumers, wide // columns
    layout_d = hopper_helpers.make_smem_layout_epi(type_d, major_d, (ROWS, wide), buffers)
    layout_rest = hopper_helpers.make_smem_layout_epi(type_d, major_d, (ROWS, columns), buffers * stored)
    stages_a, stages_b = stages_of(mA, mB, config, depth, cluster, rank)
    sD = cute.make_smem_tensor(layout_d, type_d, alignment=1024)
    store_d, gD = cpasync.make_tiled_tma_atom(
        cpasync.CopyBulkTensorTileS2GOp(), mD, cute.slice_(layout_d, (None, None, 0)), (ROWS, wide)
    )
    sRest, store_rest, gRest = sD, store_d, gD
    if stored > 1:  # the last columns of a tile are in narrower chunks, in the same memory
        sRest = cute.make_tensor(sD.iterator, layout_rest)
        store_rest, gRest = cpasync.make_tiled_tma_atom(
            cpasync.CopyBulkTensorTileS2GOp(), mD, cute.slice_(layout_rest, (None, None, 0)), (ROWS, columns)
        )

    # the consumers of different tiles take turns
    thread = pipeline.Agent.Thread
    turn = pipeline.PipelineOrder.create(
        depth=1,
        length=config.consumers,
        group_id=group - 1,
        producer_group=pipeline.CooperativeGroup(thread, WARPGROUP),
        defer_sync=True,
    )
    pipe = pipe_of(config)
    pipeline.pipeline_init_arrive(config.cluster, is_relaxed=True)
    producer, consumer = pipe.make_participants()
    count = cute.ceil_div(mA.shape[1], depth)
    problem = cute.ceil_div(mA.shape[0], config.m), cute.ceil_div(mB.shape[0], config.n), mD.shape[2]
    params = utils.PersistentTileSchedulerParams(problem, (*config.cluster, 1), config.group, raster_along_m=False)
    scheduler = tile_scheduler(params, cute.size(problem), count, config.splits)
    pipeline.pipeline_init_wait(config.cluster)

    if group == 0:
        if config.consumers > 1:
            cute.arch.setmaxregister_decrease(config.registers[0])
        if warp == 0:
            cpasync.prefetch_descriptor(stages_a.atom)
            cpasync.prefetch_descriptor(stages_b.atom)
            cute.arch.griddepcontrol_wait()
            work = scheduler.initial_work_tile_info()
            while work.is_valid_tile:
                m, n, layer = work.tile_idx
                begin, end = (scheduler.begin, scheduler.end) if config.splits > 1 else (0, count)
                load_strips(producer, begin, end, stages_a, (m, layer), stages_b, (n, layer))
                scheduler.advance_to_next_work()
                work = scheduler.get_current_work()
            producer.tail()
    else:
        if config.consumers > 1:  # a thread of one alone has enough
            cute.arch.setmaxregister_increase(config.registers[1])
        own, mine = group - 1, t % WARPGROUP
        mma = warpgroup_mma(mA, mB, config.sharing, config.n)
        part = mma.get_slice(mine if config.sharing == 1 else t - WARPGROUP)
        rA = mma.make_fragment_A(part.partition_A(stages_a.tensor))  # (MMA,MMA_M,steps,stages)
        rB = mma.make_fragment_B(part.partition_B(stages_b.tensor))  # (MMA,1,steps,stages)
        whole = cute.local_tile(mD[None, None, 0], (config.m, config.n), (0, 0))
        acc = mma.make_fragment_C(part.partition_C(whole))  # (MMA,MMA_M,1)
        strips, steps = cute.size(acc, 1), cute.size(rA, 2)

        # the accumulators of a part of D that is stored at a time are those of a narrower multiplication
        narrow, whole_chunk = (warpgroup_mma(mA, mB, 1, each) for each in (columns, wide))
        inner = (2, 2, columns // 8), 1, 1
        chunks = cute.composition(acc, cute.make_layout((*inner, config.n // columns, strips)))
        rD = cute.make_rmem_tensor(cute.make_layout(((2, 2, wide // 8), 1, 1)), type_d)
        results = cute.composition(rD, cute.make_layout((*inner, stored)))
        to_shared = hopper_helpers.sm90_get_smem_store_op(major_d, type_d, accumulated(type_a))
        r2s = cute.make_tiled_copy_C(to_shared, whole_chunk).get_slice(mine)
        tRsD, tRrD = r2s.partition_D(sD), r2s.retile(rD)  # (8,1,1,buffers)
        rest, tRsRest = r2s, tRsD
        if stored > 1:
            rest = cute.make_tiled_copy_C(to_shared, narrow).get_slice(mine)
            tRsRest = rest.partition_D(sRest)
        stores = pipeline.PipelineTmaStore.create(
            num_stages=config.buffers, producer_group=pipeline.CooperativeGroup(thread, WARPGROUP)
        )
        buffer = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, config.buffers)

        whole_columns = type(mD.shape[1]) is int and mD.shape[1] % config.n == 0

        def columns_of(bias: cute.Tensor, column: Int) -> cute.TensorSSA:
            """The bias of each row of a part of D; 0 beyond the last column."""
            every_row = cute.make_tensor(bias.iterator, cute.make_layout(mD.shape[:2], stride=(0, 1)))

            def part_of(tensor: Any) -> Any:
                tile = cute.local_tile(tensor, (ROWS, columns), (0, column))
                return by_columns(narrow.get_slice(mine).partition_C(tile))[0, None]

            part, coordinates = part_of(every_row), part_of(cute.make_identity_tensor(mD.shape[:2]))
            loaded = cute.make_rmem_tensor_like(part)
            loaded.fill(0)
            within = None if whole_columns else cute.bounds(coordinates, (None, mD.shape[1]))
            cute.autovec_copy(part, loaded, pred=within)
            return loaded.load().reshape((1, cute.size(loaded)))

        def tile_of(matrix: cute.Tensor, row: Int, column: Int, across: bool = True) -> cute.TensorSSA:
            """A part of a matrix like D, in f32; 0 beyond its ends. Where it is not `across`, a column alone."""
            tile = cute.local_tile(matrix, (ROWS, columns), (row, column if across else 0))
            part = by_columns(narrow.get_slice(mine).partition_C(tile))
            whole = cute.make_identity_tensor(mD.shape[:2])
            places = narrow.get_slice(mine).partition_C(cute.local_tile(whole, (ROWS, columns), (row, column)))
            limits = mD.shape[0], None if not across or whole_columns else mD.shape[1]
            loaded = cute.make_rmem_tensor_like(part)
            loaded.fill(0)
            cute.autovec_copy(part, loaded, pred=cute.bounds(by_columns(places), limits))
            return loaded.load().to(cute.Float32)

        def rows_of(scale: cute.Tensor, row: Int, column: Int) -> cute.TensorSSA:
            """A number for each row of a part of D, for all of its columns."""
            every_column = cute.make_layout(mD.shape[:2], stride=(1, 0))
            return tile_of(cute.make_tensor(scale.iterator, every_column), row, column, False)

        exchange = Exchange(parts, ready, config.m * config.n, WARPGROUP * config.consumers)
        cute.arch.griddepcontrol_wait()
        if config.takes_turns and own == 1:  # the other begins
            scheduler.advance_to_next_work()
            consumer.state.advance(count)
        work = scheduler.get_current_work()
        while work.is_valid_tile:
            m, n, layer = work.tile_idx
            begin, end = (scheduler.begin, scheduler.end) if config.splits > 1 else (0, count)
            if config.takes_turns:
                turn.wait()
            before = consumer.state.clone()
            for k in cute.range(begin, end):
                stage = consumer.wait_and_advance()
                warpgroup.fence()
                for step in cute.range_constexpr(steps):
                    mma.set(warpgroup.Field.ACCUMULATE, k > begin if step == 0 else True)
                    at = (None, None, step, stage.index)
                    cute.gemm(mma, acc, rA[at], rB[at], acc)
                warpgroup.commit_group()
                warpgroup.wait_group(1)
                if k > begin:  # the earlier products are complete
                    pipe.consumer_release(before)
                    before.advance()
            if config.takes_turns:
                turn.arrive()
                consumer.state.advance(count)
            warpgroup.wait_group(0)
            pipe.consumer_release(before)

            if config.splits > 1:
                if scheduler.part > 0:
                    exchange.leave(acc, scheduler.place + scheduler.part, t - WARPGROUP)
                elif scheduler.is_shared:
                    for number in cute.range(1, config.splits):
                        exchange.add(acc, scheduler.place + number, t - WARPGROUP)
            if config.splits == 1 or scheduler.part == 0:
                for strip in cute.range_constexpr(strips):
                    for first in cute.range_constexpr(0, config.n // columns, stored):
                        to = own * config.buffers + buffer.index
                        buffer.advance()
                        row = config.m // ROWS * m + (strip if config.takes_turns else config.sharing * strip + own)
                        number = min(stored, config.n // columns - first)
                        for i in cute.range_constexpr(number):
                            column = config.n // columns * n + first + i
                            result = by_columns(chunks[None, None, None, first + i, strip]).load()
                            if scale_m is not None:
                                result = result * rows_of(scale_m, row, column)
                            if scale_n is not None:
                                result = result * columns_of(scale_n, column)
                            if bias is not None:
                                result = result + (
                                    rows_of(bias, row, column) if config.swaps else columns_of(bias, column)
                                )
                            if activation is not None:
                                result = activation(result)
                            if gate is not None:
                                result = result * tile_of(gate, row, column)
                            if residual is not None:
                                result = result + tile_of(residual, row, column)
                            by_columns(results[None, None, None, i]).store(result.to(type_d))
                        if warp % 4 == 0:
                            stores.producer_acquire()  # the buffer has been read
                        sync_consumer(own)
                        if number == stored:
                            cute.copy(r2s, tRrD, tRsD[None, None, None, to])
                        else:
                            for i in cute.range_constexpr(number):
                                part_of_rest = rest.retile(results[None, None, None, i])
                                cute.copy(rest, part_of_rest, tRsRest[None, None, None, to * stored + i])
                        cute.arch.fence_proxy("async.shared", space="cta")
                        sync_consumer(own)
                        if warp % 4 == 0:
                            with cute.arch.elect_one():
                                column = config.n // columns * n + first
                                if number == stored:
                                    write(store_d, gD, wide, sD, to, row, column * columns, layer)
                                else:
                                    for i in cute.range_constexpr(number):
                                        at_column = (column + i) * columns
                                        write(store_rest, gRest, columns, sRest, to * stored + i, row, at_column, layer)
                                stores.producer_commit()
            scheduler.advance_to_next_work(config.consumers if config.takes_turns else 1)
            work = scheduler.get_current_work()
        if warp % 4 == 0:
            stores.producer_tail()


@cute.kernel
def empty_kernel(mD: cute.Tensor, bias: cute.Tensor | None, activation: cute.Constexpr[Activation | None]):
    """D where K is 0: a block for each row."""
    m, layer, _ = cute.arch.block_idx()
    mD = cute.append(mD, up_to_rank=3)
    for n in cute.range(cute.arch.thread_idx()[0], mD.shape[1], WARPGROUP):
        result = (cute.Int32 if mD.element_type.kind == "int" else cute.Float32)(0)
        if bias is not None:
            result = result + bias[n]
        if activation is not None:
            result = activation(result)
        mD[m, n, layer] = result.to(mD.element_type)


def _by_rows(matrix: Array) -> bool:
    """Whether the rows of a matrix are contiguous: of NumPy, which counts strides in bytes, or of torch."""
    if len(matrix.shape) != 2:
        return False
    return (matrix.strides[1] // matrix.itemsize if isinstance(matrix, np.ndarray) else matrix.stride(1)) == 1


def gemm(
    A: Array,
    B: Array,
    D: Array,
    config: Config | None = None,
    device: str = "auto",
    blocks: int = 132,
    bias: Array | None = None,
    activation: Activation | None = None,
    **options: object,
) -> None:
    """D = activation(A @ B^T + bias) by at most `blocks` blocks, one for each multiprocessor. A bias has a number for
    each column of D. Matrices may have a third mode, the products of a batch; with a stride of 0 they are all the same.
    Without a `config`, products with few rows of A, or with few tiles, take the kernel of gemm_skinny.py.
    """
    if 0 in D.shape:
        return
    m, n, layers = (*D.shape, 1)[:3]
    if A.shape[1] == 0:
        empty_kernel(D, bias, activation).launch((m, layers, 1), WARPGROUP, device=device, **options)
        return
    if config is None and _by_rows(A) and _by_rows(B) and is_skinny(m, n, blocks):
        skinny_gemm(A, B, D, None, device, blocks, bias, activation, **options)
        return
    config = config or chosen_config(m, n, A.shape[1], blocks, A.dtype.itemsize, layers)
    if config.splits > 1:
        refuse("gemm", "blocks that share K need memory, which tilefold.kernels.gemm gives them")
    tiles = (*config.tiles(m, n), layers)
    cluster = (*config.cluster, 1)
    params = utils.PersistentTileSchedulerParams(tiles, cluster)
    grid = utils.StaticPersistentTileScheduler.get_grid_shape(params, blocks // cute.size(cluster))
    call = gemm_kernel(A, B, D, config, bias, activation)
    call.launch(grid, config.threads, cluster=cluster, use_pdl=True, device=device, **options)
