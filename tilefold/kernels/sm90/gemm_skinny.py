# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""D = act(A @ B^T + bias) on Hopper (sm_90a) for an A of few rows, as in the decoding of a language model.

The memory that holds B is the limit: each element of B is read once and used M times. So the operands change places:
64 or 128 rows of B are the M of wgmma and the rows of A its N, which may be as small as 8. Blocks of a cluster share
K, so that a B of few rows keeps all multiprocessors busy too. Each sums up its part; then each adds up a slice of all
parts, which it reads from the shared memory of the others, always in the same order.

Where tiles are no whole waves, a `stream` of blocks has equal parts of the strips of K of all tiles instead, wherever
tiles begin. The block with a tile's first strips writes it, and adds the sums that later blocks leave in memory
(gemm_shared_k.py). These blocks are launched first, and begin with the tile that they share. The blocks of a `pair`
have neighbouring tiles of B and load each tile of A together, since many rows of A are as many bytes as B.

One warp loads by TMA copies. Before the kernel ahead has ended, it brings the first tiles of B to the L2 cache,
which is right even if that kernel writes B. B is read once, so that it leaves the cache before other data. Blocks
of a stream, and those of which two fit a multiprocessor, let the next kernel begin at once; others do so when their
last strips are on their way, which the next kernel's strips would delay.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tilefold import cute
from tilefold.cute import pipeline, utils
from tilefold.cute.nvgpu import cpasync, warpgroup
from tilefold.cute.typing import Int
from tilefold.cute.utils import hopper_helpers

from ..arguments import Array, refuse
from .gemm_scaled import ScaledSums
from .gemm_shared_k import Exchange
from .parts import READ_ONCE, ROWS, WARPGROUP, Stages
from .skinny_model import VECTOR, Skinny, chosen_skinny

Activation = Callable[[cute.TensorSSA], cute.TensorSSA]
"""A function of the sums that is applied before they are written."""


def adjacent(row: cute.Tensor, number: Int, vector: int) -> Any:
    """Adjacent elements of a row in f32, as a column."""
    return cute.local_tile(row, (vector,), (number,)).load().to(cute.Float32).reshape((vector, 1))


@cute.kernel(min_blocks=1)
def skinny_kernel(
    mA: cute.Tensor,
    mB: cute.Tensor,
    mD: cute.Tensor,
    config: cute.Constexpr[Skinny],
    bias: cute.Tensor | None = None,
    activation: cute.Constexpr[Activation | None] = None,
    scale_m: cute.Tensor | None = None,
    scale_n: cute.Tensor | None = None,
    gate: cute.Tensor | None = None,
    residual: cute.Tensor | None = None,
    left: cute.Tensor | None = None,
    ready: cute.Tensor | None = None,
):
    t = cute.arch.thread_idx()[0]
    column, row, rank = cute.arch.block_idx()
    warp, group = (cute.arch.make_warp_uniform(t // threads) for threads in (32, WARPGROUP))
    which = column % config.pair
    peers = cute.make_layout((config.pair, 1, 1))
    mask = cpasync.create_tma_multicast_mask(peers, (which, 0, 0), 0) if config.pair > 1 else None
    if config.lets_begin:
        cute.arch.griddepcontrol_launch_dependents()

    # shared memory, and the maps of A and B
    dtype = mA.element_type
    depth = 1024 // dtype.bits  # elements in 128 bytes
    shape, by_rows = (config.rows, config.m, depth), utils.LayoutEnum.ROW_MAJOR
    stages_b = Stages(mB, hopper_helpers.make_smem_layout_a(by_rows, shape, dtype, config.stages), (config.rows, depth))
    layout_a = hopper_helpers.make_smem_layout_b(by_rows, shape, dtype, config.stages)
    stages_a = Stages(mA, layout_a, (config.m, depth), config.pair, which, mask)
    acc_type = cute.Int32 if dtype.kind == "int" else cute.Float32
    factor = cute.TFloat32 if dtype == cute.Float32 else dtype
    vector = config.vector
    padded = cute.make_layout((config.rows, config.m), stride=(1, config.rows + VECTOR))
    sums = cute.make_smem_tensor(padded, acc_type, alignment=128)

    share = config.rows // config.splits // vector
    parts = [cute.arch.mapa(sums, peer) if config.splits > 1 else sums for peer in range(config.splits)]

    @cute.jit
    def write(n: Int, m: Int):
        """Writes the block's slice of a tile, the sum of those of its cluster."""
        for v in cute.range(t, share * config.m, WARPGROUP):
            row, at = v // share, rank * share + v % share
            into, column = m * config.m + row, n * (config.rows // vector) + at
            if into < mD.shape[0] and column * vector < mD.shape[1]:
                result = cute.local_tile(parts[0], (vector, 1), (at, row)).load()
                for peer in cute.range_constexpr(1, config.splits):
                    result = result + cute.local_tile(parts[peer], (vector, 1), (at, row)).load()
                if scale_m is not None:
                    result = result * scale_m[into]
                if scale_n is not None:
                    result = result * adjacent(scale_n, column, vector)
                if bias is not None:
                    result = result + adjacent(bias, column, vector)
                if activation is not None:
                    result = activation(result)
                if gate is not None:
                    result = result * adjacent(gate[into, None], column, vector)
                if residual is not None:
                    result = result + adjacent(residual[into, None], column, vector)
                to = cute.make_tensor(mD[into, None].iterator, cute.make_layout((mD.shape[1], 1), stride=(1, 0)))
                cute.local_tile(to, (vector, 1), (column, 0)).store(result.to(mD.element_type))

    thread = pipeline.Agent.Thread
    pipe = pipeline.PipelineTmaAsync.create(
        num_stages=config.stages,
        producer_group=pipeline.CooperativeGroup(thread),
        consumer_group=pipeline.CooperativeGroup(thread, 4 * config.pair),
        tx_count=128 * (config.rows + config.m),
        cta_layout_vmnk=cute.make_layout((1, config.pair, 1, 1)),
        defer_sync=True,
    )
    pipeline.pipeline_init_arrive((config.pair, 1))
    producer, consumer = pipe.make_participants()
    count, high = cute.ceil_div(mA.shape[1], depth), cute.ceil_div(mA.shape[0], config.m)
    if config.stream > 0:  # the strips of K of the block, counted over all tiles
        streams = config.stream // config.pair
        number = streams - 1 - column // config.pair
        strips = cute.ceil_div(mB.shape[0], config.rows * config.pair) * high * count
        begin, end = begin_of(number, strips, streams), begin_of(number + 1, strips, streams)
    else:
        number = strips = streams = 0
        begin, end = count * rank // config.splits, count * (rank + 1) // config.splits
    pipeline.pipeline_init_wait((config.pair, 1))

    @cute.jit
    def load(n: Int, m: Int, begin: Int, end: Int):
        """Loads some strips of a tile."""
        for k in cute.range(begin, end):
            if not config.lets_begin and k == cute.math.max(begin, end - config.stages):
                cute.arch.griddepcontrol_launch_dependents()
            stage = producer.acquire_and_advance()
            with cute.arch.elect_one():
                stages_b.load((n, k), stage, READ_ONCE)
                stages_a.load((m, k), stage)
            stage.commit()

    if group == 1:
        if warp == 4:
            cpasync.prefetch_descriptor(stages_b.atom)
            cpasync.prefetch_descriptor(stages_a.atom)
            first = begin // count if config.stream > 0 else 0
            with cute.arch.elect_one():
                n = first // high * config.pair + which if config.stream > 0 else column
                stop = min(min(end - first * count, count), begin - first * count + config.stages)
                for k in cute.range(begin - first * count, stop):
                    cute.prefetch(stages_b.atom, stages_b.source[None, n, k])
            cute.arch.griddepcontrol_wait()
            if config.stream > 0:
                now = begin
                while now < end:
                    tile = now // count
                    stop = min((tile + 1) * count, end)
                    n = tile // high * config.pair + which
                    load(n, tile % high, now - tile * count, stop - tile * count)
                    now = stop
            else:
                load(column, row, begin, end)
            producer.tail()
    else:
        major = warpgroup.OperandMajorMode.K
        mma = hopper_helpers.make_trivial_tiled_mma(factor, factor, major, major, acc_type, (1, 1, 1), (ROWS, config.m))
        part = mma.get_slice(t)
        to_sums = part.partition_C(sums)
        scaled = ScaledSums(part, stages_b.tensor, stages_a.tensor, pipe, consumer, (config.rows, config.m))
        acc = scaled.sums

        @cute.jit
        def add_up(now: Any, stop: Any):
            """Adds up the products of strips."""
            if config.accurate:
                scaled.add_scaled(None, None, 0, 0, stop - now)
            else:
                scaled.add_up(stop - now)

        if config.stream > 0:
            exchange = Exchange(left, ready, config.rows * config.m, WARPGROUP)
            now = begin
            while now < end:
                tile = now // count
                stop = min((tile + 1) * count, end)
                add_up(now, stop)
                if now > tile * count:
                    exchange.leave(acc, number * config.pair + which, t)
                else:
                    other = number + 1
                    while begin_of(other, strips, streams) < (tile + 1) * count:
                        exchange.add(acc, other * config.pair + which, t)
                        other += 1
                    exchange.wait()  # the tile before has been written
                    cute.autovec_copy(acc, to_sums)
                    exchange.wait()
                    write(tile // high * config.pair + which, tile % high)
                now = stop
        else:
            add_up(begin, end)
            cute.autovec_copy(acc, to_sums)

    if config.stream == 0:  # each block of the cluster adds up a slice of the rows of B
        cute.arch.cluster_arrive()
        cute.arch.cluster_wait()
        if group == 0:
            write(column, row)
        if config.splits > 1:  # no block ends while others read its sums
            cute.arch.cluster_arrive()
            cute.arch.cluster_wait()


def begin_of(part: Int, strips: Int, parts: int) -> Int:
    """The first strip of a part, where all parts have as many strips, or one more."""
    return part * (strips // parts) + cute.math.min(part, strips % parts)


def skinny_gemm(
    A: Array,
    B: Array,
    D: Array,
    config: Skinny | None = None,
    device: str = "auto",
    blocks: int = 132,
    bias: Array | None = None,
    activation: Activation | None = None,
    **options: object,
) -> None:
    """D = activation(A @ B^T + bias) for A of M x K, B of N x K and D of M x N elements, rows contiguous, on a GPU with
    `blocks` multiprocessors.
    """
    m, n = D.shape
    config = config or chosen_skinny(m, n, A.shape[1], blocks, A.dtype.itemsize)
    if config.splits > -(-A.shape[1] * A.dtype.itemsize // 128):
        refuse("gemm", f"{config.splits} blocks share K = {A.shape[1]}, which has fewer strips of 128 bytes")
    if config.stream:
        refuse("gemm", "blocks of a stream need memory for sums, which tilefold.kernels.gemm gives them")
    config = replace(config, vector=VECTOR if n % VECTOR == 0 else 1)
    grid, cluster = config.launch(m, n)
    call = skinny_kernel(A, B, D, config, bias, activation)
    call.launch(grid, 2 * WARPGROUP, cluster=cluster, use_pdl=True, device=device, **options)
