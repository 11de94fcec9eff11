# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""O = softmax(Q K^T * scale) V on Hopper (sm_90a) for few rows of Q, as in the decoding of a language model.

Q and O are (batch, rows, heads, D), K and V (batch, keys, heads, D), f16 or bf16, with D contiguous: 64, 128 or 256.
The memory that holds K and V is the limit. So the rows of all heads of Q that share a head of K and V are multiplied at
once, 16 to a tile, and blocks of a cluster share the keys, so that few heads keep all multiprocessors busy too.

One warp of a block loads tiles of keys and values by TMA copies. Each of the others multiplies (mma.sync) a slice of
every tile, and keeps for its rows the greatest score so far, the sum of exponentials and the unfinished rows of O. At
the end the warps of a block add up theirs, and then the blocks, which read the shared memory of the others. More blocks
than a cluster has leave theirs in memory, where the last one adds them up. The order is always the same. Before the
kernel ahead has ended, the first tiles are brought to the L2 cache, where they outlast the others (evict_first).

Sequences may have fewer keys than K: `lengths`. Where causal, the last row sees all keys. With a `table` K and V are
(pages, keys, heads, D), and sequence b has its keys on the pages table[b, 0], table[b, 1] and so on.
"""

import math
from dataclasses import replace
from functools import lru_cache
from typing import Any

from tilefold import cute
from tilefold.cute import pipeline
from tilefold.cute.nvgpu import cpasync, warp, warpgroup
from tilefold.cute.typing import Int

from ..arguments import Array, like, refuse
from ..softmax_parts import exp2, pipelined, quad_reduce
from .attention_parts import DEPTHS, NEVER, ROWS, VECTOR, Decode, Memory, Parts, chosen_decode, layout_of_parts
from .parts import READ_ONCE


@cute.kernel(min_blocks=1)
def decode_kernel(
    mQ: cute.Tensor,
    mK: cute.Tensor,
    mV: cute.Tensor,
    mOut: cute.Tensor,
    scale: cute.Float32,
    config: cute.Constexpr[Decode],
    lengths: cute.Tensor | None = None,
    table: cute.Tensor | None = None,
    left: cute.Tensor | None = None,
    ready: cute.Tensor | None = None,
):
    t = cute.arch.thread_idx()[0]
    rank, y, batch = cute.arch.block_idx()
    own = cute.arch.make_warp_uniform(t // 32)
    cute.arch.griddepcontrol_launch_dependents()
    half, single = mQ.element_type, cute.Float32
    factor = scale * math.log2(math.e)
    _, rows, heads, depth = mQ.shape
    keys, warps, threads = config.keys, config.warps, 32 * config.warps
    group = heads // mK.shape[2]
    blocks_of_rows = cute.ceil_div(rows * group, config.rows)
    head, first = y // blocks_of_rows, y % blocks_of_rows * config.rows
    count_of_rows = cute.math.min(rows * group - first, config.rows)

    # shared memory: stages of keys and values, and the rows of Q; O takes the place of the stages in the end
    by_k = warpgroup.make_smem_layout_atom(warpgroup.SmemLayoutAtomKind.K_SW128, half)
    layout_q = cute.tile_to_shape(by_k, (config.rows, depth), order=(0, 1))
    layout_k = cute.tile_to_shape(by_k, (keys, depth, config.stages), order=(0, 1, 2))
    layout_o = layout_of_parts(config, depth)
    stages = 2 * keys * depth * config.stages
    memory = cute.make_smem_tensor(max(2 * stages, 4 * cute.cosize(layout_o)), cute.Int8, alignment=1024)
    sK, sV = (cute.alias(memory, layout_k, half, offset=offset) for offset in (0, stages))
    parts = Parts(config, cute.alias(memory, layout_o, single))
    sQ = cute.make_smem_tensor(layout_q, half, alignment=1024)

    def load_of(tensor: object) -> Any:
        """The TMA copy of a tile, the stages and the tiles of a tensor: (TMA,stage), (TMA,tile,1,head,batch)."""
        stage, load = cute.slice_(layout_k, (None, None, 0)), cpasync.CopyBulkTensorTileG2SOp()
        atom, whole = cpasync.make_tiled_tma_atom(load, cute.select(tensor, [1, 3, 2, 0]), stage, (keys, depth))
        tiled = cute.local_tile(whole, (keys, depth), (None, None, None, None))
        return atom, cute.group_modes(tiled, 0, 2)

    (load_k, gK), (load_v, gV) = load_of(mK), load_of(mV)
    one = cute.make_layout(1)
    to_k, from_k = cpasync.tma_partition(load_k, 0, one, cute.group_modes(sK, 0, 2), gK)
    to_v, from_v = cpasync.tma_partition(load_v, 0, one, cute.group_modes(sV, 0, 2), gV)

    thread = pipeline.Agent.Thread
    pipe = pipeline.PipelineTmaAsync.create(
        num_stages=config.stages,
        producer_group=pipeline.CooperativeGroup(thread),
        consumer_group=pipeline.CooperativeGroup(thread, warps),
        tx_count=4 * keys * depth,
    )
    producer, consumer = pipe.make_participants()

    def part_of_keys(length: Int) -> Any:
        """The tiles of keys of this block, for this many keys: the first one and that after the last."""
        low = cute.math.max(length - rows + 1 - config.window, 0) // keys if config.window else 0
        count = cute.ceil_div(length, keys) - low
        return low + count * rank // config.shares, low + count * (rank + 1) // config.shares

    most = mK.shape[1] if table is None else mK.shape[1] * table.shape[1]

    def tile_at(j: Int) -> Any:
        """The coordinates of a tile of keys."""
        if table is None:
            return None, j, 0, head, batch
        a_page = mK.shape[1] // keys
        return None, j % a_page, 0, head, cute.arch.make_warp_uniform(table[batch, j // a_page])

    chunks = depth // VECTOR

    def write(number: Int, at: Int, result: Any) -> None:
        """Writes adjacent elements of a row of the block."""
        row = first + number
        to = mOut[batch, row // group, head * group + row % group, None]
        cute.local_tile(to, (VECTOR,), (at,)).store(result.to(half))

    if own == warps:
        cpasync.prefetch_descriptor(load_k)
        cpasync.prefetch_descriptor(load_v)
        if lengths is None and table is None:
            begin, end = part_of_keys(most)
            with cute.arch.elect_one():
                for j in cute.range(begin, cute.math.min(end, begin + config.stages)):
                    cute.prefetch(load_k, from_k[tile_at(j)])
                    cute.prefetch(load_v, from_v[tile_at(j)])
        cute.arch.griddepcontrol_wait()
        begin, end = part_of_keys(most if lengths is None else lengths[batch])
        for j in cute.range(begin, end):
            place = tile_at(j)
            stage = producer.acquire_and_advance()
            with cute.arch.elect_one():
                bar, to = stage.barrier, stage.index
                cute.copy(load_k, from_k[place], to_k[None, to], tma_bar_ptr=bar, cache_policy=READ_ONCE)
                cute.copy(load_v, from_v[place], to_v[None, to], tma_bar_ptr=bar, cache_policy=READ_ONCE)
            stage.commit()
        producer.tail()
    else:
        cute.arch.griddepcontrol_wait()
        length = most if lengths is None else cute.arch.make_warp_uniform(lengths[batch])
        begin, end = part_of_keys(length)

        # the rows of Q, the last one again where there are no more; neighbouring heads of a row follow each other
        for v in cute.range(t, config.rows * (depth // 8), threads):
            row, at = v // (depth // 8), v % (depth // 8)
            number = cute.math.min(first + row, rows * group - 1)
            q = mQ[batch, number // group, head * group + number % group, None]
            cute.autovec_copy(cute.local_tile(q, (8,), (at,)), cute.local_tile(sQ, (1, 8), (row, at))[0, None])
        cute.arch.barrier(barrier_id=1, number_of_threads=threads)

        # registers: a warp multiplies 16 rows of Q by its slice of the keys, and their exponentials by the values
        lane, tile, slice_ = t % 32, own % config.tiles, own // config.tiles
        width = keys // config.slices
        op = warp.MmaF16BF16Op(half, single, (16, 8, 16))
        mma = cute.make_tiled_mma(op, (1, 1, 1), (16, 16, 16)).get_slice(lane)
        warp_q = cute.local_tile(sQ, (ROWS, depth), (tile, 0))
        warp_k = cute.local_tile(sK, (width, depth, config.stages), (slice_, 0, 0))
        warp_v = cute.select(cute.local_tile(sV, (width, depth, config.stages), (slice_, 0, 0)), [1, 0, 2])
        rQ = mma.make_fragment_A(mma.partition_A(warp_q))
        rK = mma.make_fragment_B(mma.partition_B(warp_k)[None, None, None, 0])
        rV = mma.make_fragment_B(mma.partition_B(warp_v)[None, None, None, 0])
        matrices = cute.make_copy_atom(warp.LdMatrix8x8x16bOp(num_matrices=4), half)
        transposed = cute.make_copy_atom(warp.LdMatrix8x8x16bOp(num_matrices=4, transpose=True), half)
        s2rQ = cute.make_tiled_copy_A(matrices, mma.tiled_mma).get_slice(lane)
        s2rK = cute.make_tiled_copy_B(matrices, mma.tiled_mma).get_slice(lane)
        s2rV = cute.make_tiled_copy_B(transposed, mma.tiled_mma).get_slice(lane)
        tXsK, tXrK = s2rK.partition_S(warp_k), s2rK.retile(rK)
        tXsV, tXrV = s2rV.partition_S(warp_v), s2rV.retile(rV)
        cute.copy(s2rQ, s2rQ.partition_S(warp_q), s2rQ.retile(rQ))

        # scores and their exponentials, (2,2),1,N: two neighbours of rows r and r + 8; also by rows and columns
        places = mma.partition_C(cute.make_identity_tensor((ROWS, width)))
        places_v = mma.partition_B(cute.make_identity_tensor((depth, width)))
        accS = mma.make_fragment_C(places)
        accO = mma.make_fragment_C(mma.partition_C(cute.make_identity_tensor((ROWS, depth))))
        rP = cute.make_rmem_tensor_like(accS, half)
        aP = cute.composition(rP, cute.make_layout(((2, 2, 2), 1, width // 16), stride=((1, 2, 4), 0, 8)))
        S, P = (cute.composition(x, cute.make_layout((2, (2, width // 8)), stride=(2, (1, 4)))) for x in (accS, rP))
        out = cute.composition(accO, cute.make_layout((2, (2, depth // 8)), stride=(2, (1, 4))))
        largest, total = (cute.make_rmem_tensor((2, 1), single) for _ in range(2))
        pairsK, pairsV = cute.logical_divide(rK, (None, 2)), cute.logical_divide(rV, (None, 2))
        pairsS, pairsO = cute.logical_divide(accS, (None, None, 2)), cute.logical_divide(accO, (None, None, 2))
        width16, depth16 = width // 16, depth // 16
        accO.fill(0.0)
        largest.fill(NEVER)
        total.fill(0.0)

        def seen_by(r: int) -> Int:
            """How many keys a row of the thread sees."""
            if not config.causal:
                return length
            row = first + tile * ROWS + places[2 * r][0]
            return cute.math.min(length, length - rows + 1 + row // group)

        def change_scores(start: object) -> None:
            """Scores with a cap and a bias, of keys from `start` on."""
            for r in cute.range_constexpr(2):
                row = first + tile * ROWS + places[2 * r][0]
                for i in cute.range_constexpr(width // 4):
                    score = S[r, i] * scale
                    if config.cap:
                        score = cute.tanh(score * (1 / config.cap)) * config.cap
                    if config.bias is not None:
                        key = start + places[0][1] + i // 2 * 8 + i % 2
                        score = score + config.bias(batch, head * group + row % group, row // group, key)
                    S[r, i] = score / scale

        def tile_of_keys(j: Int, masked: bool) -> None:
            stage = consumer.wait_and_advance()
            start = j * keys + slice_ * width

            def fetch_k(e: int) -> None:
                k, n = e // width16, e % width16
                cute.copy(s2rK, tXsK[None, n, k, stage.index], tXrK[None, n, k])

            def multiply_k(e: int) -> None:
                k, n = e // width16, e % width16
                cute.gemm(mma, rQ[None, None, k], pairsK[None, (None, n), k], pairsS[None, None, (None, n)])

            accS.fill(0.0)
            pipelined(width16 * depth16, fetch_k, multiply_k)
            if config.cap or config.bias is not None:
                change_scores(start)
            if masked:
                for r in cute.range_constexpr(2):
                    seen = cute.Int32(seen_by(r) - (start + places[0][1]))
                    for i in cute.range_constexpr(width // 4):
                        at = i // 2 * 8 + i % 2
                        counts = at < seen
                        if config.window:
                            counts = counts & (at >= seen - config.window)
                        S[r, i] = cute.where(counts, S[r, i], NEVER)

            # the earlier sums are scaled to the new maximum; a row may have had no key yet
            before = largest.load()
            top = quad_reduce(
                S.load().reduce(cute.ReductionOp.MAX, before, reduction_profile=(None, 1), keepdims=True),
                cute.ReductionOp.MAX,
            )
            largest.store(top)
            if masked:
                top = cute.where(top == NEVER, 0.0, top)
            shrink = exp2((before - top) * factor)
            power = exp2(cute.fma(S.load(), factor, -top * factor))
            P.store(power.to(half))
            scaled = total.load() * shrink
            total.store(power.reduce(cute.ReductionOp.ADD, scaled, reduction_profile=(None, 1), keepdims=True))
            out.store(out.load() * shrink)

            def fetch_v(e: int) -> None:
                k, n = e // depth16, e % depth16
                cute.copy(s2rV, tXsV[None, n, k, stage.index], tXrV[None, n, k])
                if masked:  # the memory after the last key may be undefined
                    for i in cute.range_constexpr(8):
                        at = i % 4, 2 * n + i // 4, k
                        rV[at] = cute.where(start + places_v[at][1] < length, rV[at], 0.0)

            def multiply_v(e: int) -> None:
                k, n = e // depth16, e % depth16
                cute.gemm(mma, aP[None, None, k], pairsV[None, (None, n), k], pairsO[None, None, (None, n)])

            pipelined(width16 * depth16, fetch_v, multiply_v)
            stage.release()

        whole = (length - rows + 1 if config.causal else length) // keys
        whole = begin if config.window else cute.math.max(cute.math.min(whole, end), begin)
        for j in cute.range(begin, whole):
            tile_of_keys(j, masked=False)
        for j in cute.range(whole, end):
            tile_of_keys(j, masked=True)

        # the warps of a tile of Q scale to the greatest maximum of all
        top = largest.load()
        if lane % 4 == 0:
            for r in cute.range_constexpr(2):
                parts.tops[places[2 * r][0], own] = top[r]
        cute.arch.barrier(barrier_id=1, number_of_threads=threads)
        for other in parts.warps_of(tile):
            for r in cute.range_constexpr(2):
                largest[r] = cute.math.max(largest[r], parts.tops[places[2 * r][0], other])
        reached = cute.where(largest.load() == NEVER, 0.0, largest.load())
        shrink = exp2((top - reached) * factor)
        total.store(quad_reduce(total.load(), cute.ReductionOp.ADD) * shrink)
        out.store(out.load() * shrink)
        for r in cute.range_constexpr(2):
            row = places[2 * r][0]
            if tile * ROWS + row < count_of_rows:
                if lane % 4 == 0:
                    parts.sums[row, own] = total[r]
                for n in cute.range_constexpr(depth // 8):
                    to = cute.local_tile(parts.rows[None, row, own], (2,), (4 * n + lane % 4,))
                    to.store(cute.local_tile(out[r, None], (2,), (n,)).load())
        cute.arch.barrier(barrier_id=1, number_of_threads=threads)

        if config.splits > 1:
            for v in cute.range(t, count_of_rows * chunks, threads):
                number = v // chunks
                parts.add_up(number % ROWS, number // ROWS, v % chunks)

    # each block of the cluster writes a part of the rows; without a cluster, the block that is the last to be done
    if config.splits > 1:
        cute.arch.cluster_arrive()
        cute.arch.cluster_wait()
    if config.parts > 1:
        if own < warps:
            groups = cute.arch.grid_dim()[1]
            memory_of = Memory(config, depth, left, ready, batch * groups + y)
            for v in cute.range(t, count_of_rows * chunks, threads):
                memory_of.leave(parts, rank, v // chunks, v % chunks)
            if memory_of.arrive(t, threads):
                for v in cute.range(t, count_of_rows * chunks, threads):
                    write(v // chunks, v % chunks, memory_of.of_blocks(v // chunks, v % chunks, factor))
                if t == 0:
                    memory_of.end()
    elif own < warps:
        count = count_of_rows * chunks
        begin, end = count * rank // config.splits, count * (rank + 1) // config.splits
        for v in cute.range(begin + t, end, threads):
            number = v // chunks
            write(number, v % chunks, parts.of_blocks(number % ROWS, number // ROWS, v % chunks, factor))
    if config.splits > 1:  # no block ends while others read its sums
        cute.arch.cluster_arrive()
        cute.arch.cluster_wait()


@lru_cache(maxsize=4096)
def decode_plan(
    shape: tuple[int, ...],
    shape_k: tuple[int, ...],
    pages: int | None,
    blocks: int,
    causal: bool,
    config: Decode | None = None,
    window: int = 0,
    cap: float = 0.0,
    bias: Array | None = None,
) -> tuple[Decode, tuple[int, int, int]]:
    """The configuration, if none is given, and the grid for Q and K of such shapes. LaunchError (E3106) for sizes that
    the kernel does not take.
    """
    (batch, rows, heads, depth), (_, keys, heads_k, _) = shape, shape_k
    if depth not in DEPTHS or heads % heads_k:
        problem = f"D = {depth} is not 64, 128 or 256, or {heads_k} heads of K do not divide {heads} of Q"
        refuse("decode_attention", problem)
    shared = rows * heads // heads_k
    most = keys if pages is None else keys * pages
    most = min(most, window + rows) if window else most
    config = config or chosen_decode(batch, heads_k, most, blocks, shared, depth, 0 if pages is None else keys)
    config = replace(config, causal=causal, window=window, cap=cap, bias=bias)
    if pages is not None and keys % config.keys:
        refuse("decode_attention", f"a page of {keys} keys is not a multiple of the {config.keys} of a tile")
    return config, (config.shares, heads_k * -(-shared // config.rows), batch)


def memory_sizes(config: Decode, grid: tuple[int, int, int], depth: int) -> tuple[int, int]:
    """The numbers of f32 and of i32 that blocks need which share keys by memory; the latter are 0 before and after."""
    groups = grid[1] * grid[2]
    return groups * config.parts * config.rows * (depth + 2), groups


def decode_attention(
    Q: Array,
    K: Array,
    V: Array,
    Out: Array,
    config: Decode | None = None,
    device: str = "auto",
    blocks: int = 132,
    lengths: Array | None = None,
    causal: bool = False,
    table: Array | None = None,
    **options: object,
) -> None:
    """O = softmax(Q K^T / sqrt(D)) V for each head, on a GPU with `blocks` multiprocessors.

    `lengths` has the keys of each sequence as i32; by default these are all. `table` has the pages of each sequence, as
    i32. LaunchError (E3106) for sizes that the kernel does not take.
    """
    pages = None if table is None else table.shape[1]
    config, grid = decode_plan(tuple(Q.shape), tuple(K.shape), pages, blocks, causal, config)
    left, ready = None, None
    if config.parts > 1:
        sizes = memory_sizes(config, grid, Q.shape[3])
        left, ready = (like(Q, (size,), dtype) for size, dtype in zip(sizes, ("float32", "int32"), strict=True))
        ready[...] = 0
    call = decode_kernel(Q, K, V, Out, 1 / math.sqrt(Q.shape[3]), config, lengths, table, left, ready)
    call.launch(grid, config.threads, cluster=(config.splits, 1, 1), use_pdl=True, device=device, **options)
