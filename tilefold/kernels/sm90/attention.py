# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""O = softmax(Q K^T * scale) V for each head on Hopper (sm_90a): TMA copies, multiplications by warpgroups.

Q and O are (batch, rows, heads, D), K and V (batch, keys, heads, D), f16 or bf16, with D contiguous: 64, 96, 128 or
256. K and V may have fewer heads than Q; neighbouring heads of Q share one then. Where causal, the last row sees all
keys. Packed sequences of several lengths, one after the other, are (1, tokens, heads, D) with the first token of each
and their number in `starts`, and in `starts_k` for K and V. Q, K and V may be fp8, with V transposed
(attention_fp8.py), O of 16 bits, and D of 64 or 128. Each of them may have a scale for a batch and a head of K, of f32.

A block has one warpgroup that loads tiles by TMA copies and two or three that multiply, 64 rows of one head each.
These keep for each row the greatest score so far, the sum of exponentials and the unfinished row of O. While one tile
of keys becomes exponentials, the tensor cores multiply the exponentials before by their values; of two warpgroups one
multiplies while the other exponentiates (Shah et al., FlashAttention-3, 2024). The next rows' first keys are multiplied
with the last values of these. A block that is done with its rows draws the next ones from a counter.
"""

import math
from typing import Any

import numpy as np

from tilefold import cute
from tilefold.cute import pipeline
from tilefold.cute.nvgpu import cpasync, warpgroup
from tilefold.cute.typing import Int

from ..arguments import Array
from ..softmax_parts import exp2, quad_reduce
from .attention_decode import decode_attention
from .attention_elements import Elements
from .attention_parts import is_decode
from .attention_tiles import (
    ROWS,
    WARPGROUP,
    WIDE,
    Config,
    Tile,
    Tiles,
    chosen_config,
    load_of,
    load_stage,
    parts,
    quarters,
    turn,
)

NEVER = float("-inf")


@cute.kernel(min_blocks=1)
def attention_kernel(
    mQ: cute.Tensor,
    mK: cute.Tensor,
    mV: cute.Tensor,
    mOut: cute.Tensor,
    scale: cute.Float32,
    counter: cute.Tensor,
    config: cute.Constexpr[Config],
    starts: cute.Tensor | None = None,
    starts_k: cute.Tensor | None = None,
    mLse: cute.Tensor | None = None,
    scale_q: cute.Tensor | None = None,
    scale_k: cute.Tensor | None = None,
    scale_v: cute.Tensor | None = None,
):
    t, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    blocks, _, _ = cute.arch.grid_dim()
    warp = cute.arch.make_warp_uniform(t // 32)
    group = cute.arch.make_warp_uniform(t // WARPGROUP)
    cute.arch.griddepcontrol_launch_dependents()
    half, single = mQ.element_type, cute.Float32
    _, sequence, heads, depth = mQ.shape
    _, sequence_k, heads_k, _ = mK.shape
    consumers, keys, row_bytes = config.consumers, config.keys, half.bits // 8 * depth

    # shared memory, and the TMA copies that fill it
    elements = Elements(half, depth, keys)
    by_k = elements.by_k(depth)
    layout_q = cute.tile_to_shape(by_k, (ROWS, depth, consumers * config.row_stages), order=(0, 1, 2))
    layout_k = cute.tile_to_shape(by_k, (keys, depth, config.stages), order=(0, 1, 2))
    layout_v = elements.layout_v(config.stages)
    sQ, sK, sV = (cute.make_smem_tensor(layout, half, alignment=1024) for layout in (layout_q, layout_k, layout_v))

    load_q, gQ = load_of(mQ, [1, 3, 2, 0], layout_q, (ROWS, depth))
    load_k, gK = load_of(mK, [1, 3, 2, 0], layout_k, (keys, depth))
    load_v, gV = load_of(mV, elements.order_v(), layout_v, (depth, keys))

    # mbarriers: rows, keys and values go from the warp that loads to those that multiply, and so does their number
    thread = pipeline.Agent.Thread
    one, readers, row_readers = (pipeline.CooperativeGroup(thread, n) for n in (1, 4 * consumers, 4))
    pipe_q, pipe_k, pipe_v = (
        pipeline.PipelineTmaAsync.create(
            num_stages=stages, producer_group=one, consumer_group=group, tx_count=count * row_bytes, defer_sync=True
        )
        for stages, group, count in (
            (consumers * config.row_stages, row_readers, ROWS),
            (config.stages, readers, keys),
            (config.stages, readers, keys),
        )
    )
    slots = pipeline.PipelineAsync.create(num_stages=2, producer_group=one, consumer_group=readers)
    sTile = cute.make_smem_tensor(cute.make_layout((6, 2)), cute.Int32)

    if group == 0:
        cute.arch.setmaxregister_decrease(config.registers[0])
        if warp == 0:
            for atom in (load_q, load_k, load_v):
                cpasync.prefetch_descriptor(atom)
            cute.arch.griddepcontrol_wait()
            fill_q = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, consumers * config.row_stages)
            fill_k = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, config.stages)
            fill_v = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, config.stages)
            slot = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, 2)

            def hand_over(tile: Tile) -> None:
                """Tells the warpgroups that multiply the next tile, or that the work has ended."""
                slots.producer_acquire(slot)
                with cute.arch.elect_one():
                    for i, value in enumerate((tile.m, tile.head, tile.batch, tile.start, tile.rows, tile.keys)):
                        sTile[i, slot.index] = value
                    slots.producer_commit(slot)
                slot.advance()

            def load_rows(tile: Tile) -> None:
                """Loads the rows of a tile."""
                tQsQ, tQgQ = parts(load_q, sQ, gQ, (ROWS, depth), (tile.start, 0, 0, 0))
                for i in cute.range_constexpr(consumers):
                    number = consumers * tile.m + i
                    load_stage(pipe_q, fill_q, load_q, tQgQ[None, number, 0, tile.head, tile.batch], tQsQ)

            def load_keys(tile: Tile, j: Int) -> None:
                """Loads keys."""
                tKsK, tKgK = parts(load_k, sK, gK, (keys, depth), (tile.start_k, 0, 0, 0))
                head_k = tile.head // (heads // heads_k)
                load_stage(pipe_k, fill_k, load_k, tKgK[None, j, 0, head_k, tile.batch], tKsK)

            def load_values(tile: Tile, j: Int) -> None:
                """Loads values."""
                tVsV, tVgV = parts(load_v, sV, gV, (depth, keys), (0, tile.start_k, 0, 0))
                head_k = tile.head // (heads // heads_k)
                load_stage(pipe_v, fill_v, load_v, tVgV[None, 0, j, head_k, tile.batch], tVsV)

            # in the order in which they are multiplied: the first keys of a tile before the last values of the one
            # before; a number is drawn while there is still something to load
            tiles = Tiles(config, mQ.shape, mK.shape[1], starts, starts_k)
            number, drawn = block, cute.Int32(0)
            tile, before = tiles.at(number), Tile(-1)
            while tile.m >= 0:
                hand_over(tile)
                last = tile.tiles_of_keys(config) - 1
                load_keys(tile, last)
                if config.row_stages > 1:
                    load_rows(tile)
                if before.m >= 0:
                    load_values(before, 0)
                if config.row_stages == 1:  # the place of rows is free when those before have all scores
                    load_rows(tile)
                for j in cute.range(last, 1, -1):
                    load_keys(tile, j - 1)
                    load_values(tile, j)
                if t == 0:
                    drawn = cute.arch.atomic_add(counter.ptr(0), 1)
                if last > 0:
                    load_keys(tile, 0)
                    load_values(tile, 1)
                before = tile
                number = blocks + cute.arch.make_warp_uniform(drawn)
                tile = tiles.at(number)
            if before.m >= 0:
                load_values(before, 0)
            hand_over(tile)
            # every tile is drawn, and every block has drawn in vain
            if (t == 0) & (number - blocks == tiles.before - 1):
                cute.arch.atomic_exch(counter.ptr(0), 0)
    else:
        cute.arch.setmaxregister_increase(config.registers[1])
        own = group - 1
        qk, pv = elements.products()
        thread_qk, thread_pv = qk.get_slice(t % WARPGROUP), pv.get_slice(t % WARPGROUP)
        rQ = qk.make_fragment_A(thread_qk.partition_A(sQ))  # (MMA,1,steps,stages)
        rK = qk.make_fragment_B(thread_qk.partition_B(sK))  # (MMA,1,steps,stages)
        rV = pv.make_fragment_B(thread_pv.partition_B(sV))
        places = thread_qk.partition_C(cute.make_identity_tensor((ROWS, keys)))
        accS = qk.make_fragment_C(places)
        accO = pv.make_fragment_C(thread_pv.partition_C(cute.make_identity_tensor((ROWS, depth))))
        rP = elements.registers(accS)
        rO = cute.make_rmem_tensor_like(accO, mOut.element_type)
        aP = elements.operand(rP)
        by_rows = cute.make_layout((2, (2, keys // 8)), stride=(2, (1, 4)))
        by_rows_of_o = cute.make_layout((2, (2, depth // 8)), stride=(2, (1, 4)))
        S, out, to = (cute.composition(accS, by_rows), *(cute.composition(x, by_rows_of_o) for x in (accO, rO)))
        words, vector = cute.recast_tensor(rO, cute.Int32), cute.make_rmem_tensor((4,), cute.Int32)
        largest, total, shrink, reached = (cute.make_rmem_tensor((2, 1), single) for _ in range(4))
        factor = scale * math.log2(math.e)
        is_ragged = config.causal or starts is not None or type(sequence_k) is not int or sequence_k % keys != 0
        used_q = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, consumers * config.row_stages)
        used_k = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, config.stages)
        used_v = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, config.stages)
        slot = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, 2)
        used_q.advance(own)

        def next_tile() -> Tile:
            """The tiles that the loading warp has handed over."""
            slots.consumer_wait(slot)
            count = 3 if starts is None else 6
            tile = Tile(*(cute.arch.make_warp_uniform(sTile[i, slot.index]) for i in range(count)))
            cute.arch.sync_warp()
            with cute.arch.elect_one():
                slots.consumer_release(slot)
            slot.advance()
            if starts is None:
                tile.start, tile.rows, tile.keys = 0, sequence, sequence_k
            at = tile.batch, tile.head // (heads // heads_k)
            of_q, of_k = (1.0 if scales is None else scales[at] for scales in (scale_q, scale_k))
            tile.factor, tile.worth = factor * of_q * of_k, 1.0 if scale_v is None else scale_v[at]
            return tile

        def release(pipe: Any, state: Any) -> None:
            """The stage is needed no longer."""
            pipe.consumer_release(state)
            state.advance()

        def multiply_qk() -> None:
            """Begins the scores of a tile of keys, when it is the warpgroup's turn."""
            pipe_k.consumer_wait(used_k)
            turn(own, config)
            warpgroup.fence()
            own_rows = used_q.index if config.row_stages > 1 else own
            if depth > 128:  # descriptors of this many steps are computed anew, since registers do not hold them all
                own_rows = cute.arch.make_warp_uniform(own_rows)
            for step in cute.range_constexpr(depth // elements.step):
                qk.set(warpgroup.Field.ACCUMULATE, step > 0)
                cute.gemm(qk, accS, rQ[None, None, step, own_rows], rK[None, None, step, used_k.index], accS)
            warpgroup.commit_group()

        def multiply_pv(accumulate: object) -> None:
            """Begins the product of the last exponentials with their values."""
            pipe_v.consumer_wait(used_v)
            warpgroup.fence()
            for step in cute.range_constexpr(keys // elements.step):
                pv.set(warpgroup.Field.ACCUMULATE, accumulate if step == 0 else True)
                cute.gemm(pv, accO, aP[None, None, step], rV[None, None, step, used_v.index], accO)
            warpgroup.commit_group()

        def exponentials(tile: Tile, j: Int, masked: bool) -> None:
            """Scores become exponentials in their place; `shrink` is the factor of the earlier sums."""
            if masked:
                for r in cute.range_constexpr(2):
                    seen = tile.keys
                    if config.causal:
                        row = tile.first_row(own, config) + places[2 * r][0]
                        seen = cute.math.min(seen, row + 1 + tile.keys - tile.rows)
                    seen = cute.Int32(seen - (j * keys + places[0][1]))
                    for i in cute.range_constexpr(keys // 4):
                        S[r, i] = cute.where(i // 2 * 8 + i % 2 < seen, S[r, i], NEVER)
            before = largest.load()
            top = S.load().reduce(cute.ReductionOp.MAX, before, reduction_profile=(None, 1), keepdims=True)
            top = quad_reduce(top, cute.ReductionOp.MAX)
            largest.store(top)
            if config.causal or starts is not None:  # a row may have had no key yet
                top = cute.where(top == NEVER, 0.0, top)
            power = exp2(cute.fma(S.load(), tile.factor, elements.shift(-top * tile.factor)))
            shrink.store(exp2((before - top) * tile.factor))
            S.store(power)
            scaled = total.load() * shrink.load()
            total.store(power.reduce(cute.ReductionOp.ADD, scaled, reduction_profile=(None, 1), keepdims=True))

        def release_scored(j: Int) -> None:
            """The scores of tile `j` are complete: it is needed no longer, nor are the rows after tile 0."""
            release(pipe_k, used_k)
            if j == 0:
                pipe_q.consumer_release(used_q)
                used_q.advance(consumers)

        def first_exponentials(tile: Tile) -> None:
            """Those of the last keys, with which rows begin, once they are multiplied."""
            last = tile.tiles_of_keys(config) - 1
            release_scored(last)
            largest.fill(NEVER)
            total.fill(0.0)
            exponentials(tile, last, masked=is_ragged)

        def next_keys(tile: Tile, j: Int, accumulate: object, masked: bool) -> None:
            """Tile `j` of the keys, beside the values of the one before."""
            multiply_qk()
            multiply_pv(accumulate)
            turn(own, config, ends=True)
            warpgroup.wait_group(1)
            release_scored(j)
            exponentials(tile, j, masked)
            warpgroup.wait_group(0)
            release(pipe_v, used_v)
            elements.narrowed(accS, rP)
            out.store(out.load() * shrink.load())

        def keep_maxima() -> None:
            """Keeps the rows' greatest scores, where they are asked for."""
            if mLse is not None:
                reached.store(largest.load())

        def finish(tile: Tile, sums: Any) -> None:
            """Writes the rows of O, which are 0 where they see no key."""
            warpgroup.wait_group(0)
            release(pipe_v, used_v)
            inverse = cute.where(sums == 0.0, 0.0, cute.arch.approx("rcp", sums))
            if scale_v is not None:
                inverse = inverse * tile.worth
            to.store((out.load() * inverse).to(mOut.element_type))
            first = tile.first_row(own, config)
            tokens = cute.domain_offset((tile.start, 0), mOut[tile.batch, None, tile.head, None])
            gO = cute.local_tile(tokens, (ROWS, depth), (first // ROWS, 0))
            tOgO = cute.composition(thread_pv.partition_C(gO), by_rows_of_o)
            for r in cute.range_constexpr(2):
                row, exchanged = places[2 * r][0], list[list[Any]]()
                if depth >= WIDE:  # 16 bytes of a row for each of the four threads that share it
                    exchanged = quarters(words, r, depth, t % 4)
                if first + row < tile.rows:
                    if depth < WIDE:
                        cute.autovec_copy(to[r, None], tOgO[r, None])
                    for b in cute.range_constexpr(len(exchanged)):
                        for i in cute.range_constexpr(4):
                            vector[i] = exchanged[b][i]
                        of_row = cute.local_tile(gO[row, None], (8,), (4 * b + t % 4,))
                        cute.autovec_copy(cute.recast_tensor(vector, mOut.element_type), of_row)
                    if mLse is not None and places[0][1] == 0:
                        lse = reached[r] * tile.factor + cute.log2(sums[r]) - elements.offset
                        mLse[tile.batch, tile.head, tile.start + first + row] = cute.where(sums[r] == 0.0, 0.0, lse)

        if own == 1:  # the other begins
            turn(own, config, ends=True)
        tile = next_tile()
        if tile.m >= 0:
            pipe_q.consumer_wait(used_q)
            multiply_qk()
            turn(own, config, ends=True)
            warpgroup.wait_group(0)
            first_exponentials(tile)
            elements.narrowed(accS, rP)
        while tile.m >= 0:
            last = tile.tiles_of_keys(config) - 1
            masked = 0
            if config.causal:  # the other tiles with keys after some row's own
                seen = cute.math.max(tile.first_row(own, config) + 1 + tile.keys - tile.rows, 0)
                masked = cute.math.max(last - seen // keys, 0)
                for j in cute.range(masked):
                    next_keys(tile, last - 1 - j, j > 0, masked=True)
            for j in cute.range(masked, last):
                next_keys(tile, last - 1 - j, j > 0, masked=False)

            # the last values, beside the last keys of the next rows
            following = next_tile()
            if following.m >= 0:
                pipe_q.consumer_wait(used_q)
                multiply_qk()
                multiply_pv(last > 0)
                turn(own, config, ends=True)
                sums = quad_reduce(total.load(), cute.ReductionOp.ADD)
                keep_maxima()
                warpgroup.wait_group(1)
                first_exponentials(following)
                finish(tile, sums)
                elements.narrowed(accS, rP)
            else:
                multiply_pv(last > 0)
                keep_maxima()
                finish(tile, quad_reduce(total.load(), cute.ReductionOp.ADD))
            tile = following


def attention(
    Q: Array,
    K: Array,
    V: Array,
    Out: Array,
    config: Config | None = None,
    device: str = "auto",
    blocks: int = 132,
    counter: Array | None = None,
    starts: Array | None = None,
    starts_k: Array | None = None,
    **options: Any,
) -> None:
    """O = softmax(Q K^T / sqrt(D)) V for each head by at most `blocks` blocks, one for each multiprocessor.

    `counter` is a 0 of i32, which it is again at the end; launches that may overlap need one each. By default each
    launch makes one. Without a `config`, few rows to each head of K take the kernel of attention_decode.py.
    """
    if config is None and starts is None and is_decode(Q, K):
        decode_attention(Q, K, V, Out, None, device, blocks, **options)
        return
    batch, rows, heads, depth = Q.shape
    config = config or chosen_config(depth)
    sequences = 1 if starts is None else starts.shape[0] - 1
    tiles = (-(-rows // config.rows) + sequences - 1) * heads * batch  # at most
    if counter is None:
        counter = np.zeros(1, np.int32) if isinstance(Q, np.ndarray) else Q.new_zeros(1).int()
    call = attention_kernel(Q, K, V, Out, 1 / math.sqrt(depth), counter, config, starts, starts_k)
    call.launch(min(blocks, tiles), config.threads, use_pdl=True, device=device, **options)
