# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The gradients of attention on Hopper (sm_90a), from Q, K, V, O, dO and the logarithms of the forward kernel's sums.

Arrays are those of attention.py, with D of 64 or 128. A block owns 128 keys of one head of K, and goes through the
tiles of rows of all heads of Q that share it: one warp loads them by TMA copies, two warpgroups multiply, 64 keys
each. Scores are transposed, keys by rows, so that exponentials P and slopes dS are operands in registers for
dV += P^T dO and dK += dS^T Q. Both warpgroups leave dS in shared memory for dQ = dS K, of which each computes a half. A
bulk copy adds it in f32 to memory, where blocks of other keys add theirs. The next tile's scores are multiplied beside
the last products of this one, and exponentials beside dO V^T.

The kernels of attention_backward_rows.py come before and after.
"""

import math
from typing import Any

from tilefold import cute
from tilefold.builder.primitives.enums import CpReduceOp, CpReduceType
from tilefold.builder.primitives.transfers import cp_reduce_async_bulk_global_shared_cta as add_in_memory
from tilefold.cute import pipeline
from tilefold.cute.nvgpu import cpasync, warpgroup
from tilefold.cute.typing import Int

from ..sm80.parts import sequence
from ..softmax_parts import exp2
from .attention_backward_rows import ADJACENT, CONSUMERS, NEVER, OWN, Backward, product_of_dq
from .attention_tiles import ROWS as KEYS
from .attention_tiles import WARPGROUP, load_stage, quarters
from .parts import sync_consumer

GROUP = 16
"""The heads of K that blocks go through at a time where causal, those of the most rows first: the L2 cache keeps Q and
dO of a group.
"""


@cute.kernel(min_blocks=1)
def attention_backward_kernel(
    mQ: cute.Tensor,
    mK: cute.Tensor,
    mV: cute.Tensor,
    mDOut: cute.Tensor,
    mStats: cute.Tensor,
    mAcc: cute.Tensor,
    mDK: cute.Tensor,
    mDV: cute.Tensor,
    scale: cute.Float32,
    config: cute.Constexpr[Backward],
    starts: cute.Tensor | None = None,
    starts_k: cute.Tensor | None = None,
):
    """dK, dV, and the sums of dQ."""
    t = cute.arch.thread_idx()[0]
    block, _, _ = cute.arch.block_idx()
    warp = cute.arch.make_warp_uniform(t // 32)
    group = cute.arch.make_warp_uniform(t // WARPGROUP)
    half, single, size = mQ.element_type, cute.Float32, config.rows
    heads, depth, heads_k = mQ.shape[2], mQ.shape[3], mK.shape[2]
    shared = heads // heads_k
    all_heads = heads_k * (mQ.shape[0] if starts is None else cute.size(starts) - 1)
    blocks = cute.ceil_div(mK.shape[1], OWN)
    group_of_heads = GROUP if config.causal else 1
    begin = block // (blocks * group_of_heads) * group_of_heads
    count, left = cute.math.min(all_heads - begin, group_of_heads), block - begin * blocks
    n, head_of_all = left // count, begin + left % count
    head_k, batch = head_of_all % heads_k, head_of_all // heads_k
    at, first, rows = sequence(mQ, batch, starts)
    _, first_k, keys = sequence(mK, batch, starts_k)
    past = keys - rows
    cute.arch.griddepcontrol_launch_dependents()  # its blocks find room when the last ones of this kernel end

    # shared memory, and the TMA copies that fill it
    by_k = warpgroup.make_smem_layout_atom(warpgroup.SmemLayoutAtomKind.K_SW128, half)
    layout_k = cute.tile_to_shape(by_k, (KEYS, depth, CONSUMERS), order=(0, 1, 2))
    layout_q = cute.tile_to_shape(by_k, (size, depth, config.stages), order=(0, 1, 2))
    layout_s = cute.tile_to_shape(by_k, (size, KEYS, 2 * CONSUMERS), order=(0, 1, 2))
    sK, sV, sQ, sO, sS = (
        cute.make_smem_tensor(layout, half, alignment=1024)
        for layout in (layout_k, layout_k, layout_q, layout_q, layout_s)
    )
    sStats = cute.make_smem_tensor(cute.make_layout((2 * size, config.stages)), single, alignment=128)
    sAcc = cute.make_smem_tensor(cute.make_layout((size * depth // CONSUMERS, CONSUMERS)), single, alignment=128)
    ready = cute.make_smem_tensor(cute.make_layout((2, CONSUMERS)), cute.Int64)  # dS of a warpgroup, by its buffer

    def load_of(tensor: object, layout: object, count: int) -> Any:
        """The TMA copy of a tile, and the coordinates of the tensor."""
        tokens, one_stage = cute.select(tensor, [1, 3, 2, 0]), cute.slice_(layout, (None, None, 0))
        return cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileG2SOp(), tokens, one_stage, (count, depth))

    def parts(coordinates: object, atom: Any, to: cute.Tensor, count: int, start: object, head: Int) -> Any:
        """Tiles in shared memory and those of a head, as an instruction moves them."""
        tiled = cute.local_tile(cute.domain_offset((start, 0, 0, 0), coordinates), (count, depth), (None, 0, head, at))
        one = cute.make_layout(1)
        return cpasync.tma_partition(atom, 0, one, cute.group_modes(to, 0, 2), cute.group_modes(tiled, 0, 2))

    loads = [
        load_of(tensor, layout, count)
        for tensor, layout, count in (
            (mK, layout_k, KEYS), (mV, layout_k, KEYS), (mQ, layout_q, size), (mDOut, layout_q, size),
        )
    ]  # fmt: skip

    # mbarriers: tiles go from the warp that loads to the warpgroups that multiply
    thread = pipeline.Agent.Thread
    one, readers = pipeline.CooperativeGroup(thread), pipeline.CooperativeGroup(thread, 4 * CONSUMERS)
    pipe_k, pipe_v, pipe_q, pipe_o = (
        pipeline.PipelineTmaAsync.create(
            num_stages=stages, producer_group=one, consumer_group=readers, tx_count=count, defer_sync=True
        )
        for stages, count in (
            (1, 2 * OWN * depth), (1, 2 * OWN * depth),
            (config.stages, 2 * size * depth + 8 * size), (config.stages, 2 * size * depth),
        )
    )  # fmt: skip
    if t == 0:
        for buffer in cute.range_constexpr(2):
            for i in cute.range_constexpr(CONSUMERS):
                cute.arch.mbarrier_init(ready.ptr(buffer, i), WARPGROUP)
    pipeline.pipeline_init_arrive((1, 1))
    pipeline.pipeline_init_wait((1, 1))
    cute.arch.griddepcontrol_wait()

    low = cute.math.max(n * OWN - past, 0) // size if config.causal else 0
    turns = cute.where(n * OWN < keys, cute.math.max(cute.ceil_div(rows, size) - low, 0), 0)
    total = turns * shared

    def after(m: Int, head: Int) -> tuple[Int, Int]:
        """The tile of rows after one, maybe the first one of the next head."""
        is_last = m + 1 == low + turns
        return cute.where(is_last, low, m + 1), cute.where(is_last, head + 1, head)

    if group == 0:
        cute.arch.setmaxregister_decrease(24)
        if warp == 0:
            (load_k, gK), (load_v, gV), (load_q, gQ), (load_o, gO) = loads
            for atom, _ in loads:
                cpasync.prefetch_descriptor(atom)
            producer = pipeline.PipelineUserType.Producer
            fill_k, fill_v = (pipeline.make_pipeline_state(producer, 1) for _ in range(2))
            fill_q, fill_o = (pipeline.make_pipeline_state(producer, config.stages) for _ in range(2))

            def load_keys(pipe: Any, state: Any, atom: Any, coordinates: object, to: cute.Tensor) -> None:
                """Loads the block's keys or values."""
                target, source = parts(coordinates, atom, to, KEYS, first_k, head_k)
                pipe.producer_acquire(state)
                with cute.arch.elect_one():
                    for i in range(CONSUMERS):
                        bar = pipe.producer_get_barrier(state)
                        cute.copy(atom, source[None, CONSUMERS * n + i], target[None, i], tma_bar_ptr=bar)
                pipe.producer_commit(state)

            def load_rows(m: Int, head: Int, with_keys: bool) -> None:
                """Loads a tile of rows, and before the first one also the keys and values."""
                tile = config.tile_of(m, batch, starts)
                if with_keys:
                    load_keys(pipe_k, fill_k, load_k, gK, sK)
                to, source = parts(gQ, load_q, sQ, size, first, head)
                stats = mStats[at * heads + head, tile, None]
                pipe_q.producer_acquire(fill_q)
                with cute.arch.elect_one():
                    bar = pipe_q.producer_get_barrier(fill_q)
                    cute.copy(load_q, source[None, m], to[None, fill_q.index], tma_bar_ptr=bar)
                    cute.arch.cp_async_bulk_load(sStats.ptr(0, fill_q.index), stats.ptr(0), 8 * size, bar)
                pipe_q.producer_commit(fill_q)
                fill_q.advance()
                if with_keys:
                    load_keys(pipe_v, fill_v, load_v, gV, sV)
                to, source = parts(gO, load_o, sO, size, first, head)
                load_stage(pipe_o, fill_o, load_o, source[None, m], to)

            if total > 0:
                load_rows(low, head_k * shared, True)
                m, head = after(low, head_k * shared)
                for _ in cute.range(1, total):
                    load_rows(m, head, False)
                    m, head = after(m, head)
    else:
        cute.arch.setmaxregister_increase(240)
        own, K, MN = group - 1, warpgroup.OperandMajorMode.K, warpgroup.OperandMajorMode.MN
        SMEM, RMEM = warpgroup.OperandSource.SMEM, warpgroup.OperandSource.RMEM
        by_rows = cute.make_tiled_mma(warpgroup.MmaF16BF16Op(half, single, (KEYS, size, 16), SMEM, K, K))
        by_depth = cute.make_tiled_mma(warpgroup.MmaF16BF16Op(half, single, (KEYS, depth, 16), RMEM, K, MN))
        of_dq, shape_dq = product_of_dq(half, config, depth)
        scores, sums, part_dq = (mma.get_slice(t % WARPGROUP) for mma in (by_rows, by_depth, of_dq))

        def turned(x: object) -> Any:
            return cute.select(x, [1, 0, 2])

        rK, rV = (by_rows.make_fragment_A(scores.partition_A(x)) for x in (sK, sV))
        rQ, rO = (by_rows.make_fragment_B(scores.partition_B(x)) for x in (sQ, sO))
        tQ, tO = (by_depth.make_fragment_B(sums.partition_B(turned(x))) for x in (sQ, sO))
        if depth == KEYS:
            rS = of_dq.make_fragment_A(part_dq.partition_A(sS))  # (MMA,rows / 64,steps,halves)
            tK = of_dq.make_fragment_B(part_dq.partition_B(turned(sK)))
        else:
            squares = cute.tile_to_shape(by_k, (KEYS, KEYS, CONSUMERS * depth // KEYS), order=(0, 1, 2))
            tK = of_dq.make_fragment_A(part_dq.partition_A(turned(cute.make_tensor(sK.iterator, squares))))
            rS = of_dq.make_fragment_B(part_dq.partition_B(sS))
        places = scores.partition_C(cute.make_identity_tensor((KEYS, size)))
        accS, accD = by_rows.make_fragment_C(places), by_rows.make_fragment_C(places)
        to_places = sums.partition_C(cute.make_identity_tensor((KEYS, depth)))
        accK, accV = by_depth.make_fragment_C(to_places), by_depth.make_fragment_C(to_places)
        into = part_dq.partition_C(cute.make_identity_tensor(shape_dq))
        accQ = cute.composition(accD, cute.make_layout(into.shape))  # dS is in shared memory then
        rP, rD = cute.make_rmem_tensor_like(accS, half), cute.make_rmem_tensor_like(accD, half)
        as_operand = cute.make_layout(((2, 2, 2), 1, size // 16), stride=((1, 2, 4), 0, 8))
        aP, aD = cute.composition(rP, as_operand), cute.composition(rD, as_operand)
        by_key = cute.make_layout((2, (2, size // 8)), stride=(2, (1, 4)))
        S, D = cute.composition(accS, by_key), cute.composition(accD, by_key)
        minus_lse = cute.make_rmem_tensor((1, (2, size // 8)), single)
        stores = cute.make_copy_atom(cute.nvgpu.warp.StMatrix8x8x16bOp(transpose=True, num_matrices=4), half)
        store = cute.make_tiled_copy_C(stores, by_rows).get_slice(t % WARPGROUP)
        to_shared, from_slopes = store.partition_D(turned(sS)), store.retile(rD)
        factor = scale * math.log2(math.e)
        used_q, used_o = (
            pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, config.stages) for _ in range(2)
        )
        used_k = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, 1)
        is_ragged = starts is not None or type(keys) is not int or keys % OWN != 0
        first_own = n * OWN + own * KEYS

        def multiply_scores(acc: cute.Tensor, a: Any, b: Any, stage: Int, accumulate: bool) -> None:
            """Begins the product of the own keys or values with a stage of rows."""
            for step in cute.range_constexpr(depth // 16):
                by_rows.set(warpgroup.Field.ACCUMULATE, accumulate or step > 0)
                cute.gemm(by_rows, acc, a[None, None, step, own], b[None, None, step, stage], acc)
            warpgroup.commit_group()

        def multiply_sums(acc: cute.Tensor, a: Any, b: Any, stage: Int) -> None:
            """Begins to add a product to dV or dK."""
            by_depth.set(warpgroup.Field.ACCUMULATE, True)
            for step in cute.range_constexpr(size // 16):
                cute.gemm(by_depth, acc, a[None, None, step], b[None, None, step, stage], acc)
            warpgroup.commit_group()

        def multiply_dq(buffer: Any, phase: Any) -> None:
            """Begins the own half of dQ, from the own slopes first."""
            into = accQ[None, 0, 0]
            for turn in cute.range_constexpr(CONSUMERS):
                side = own if turn == 0 else 1 - own
                if turn == 1:
                    cute.arch.mbarrier_wait(ready.ptr(buffer, side), phase)
                for step in cute.range_constexpr(KEYS // 16):
                    of_dq.set(warpgroup.Field.ACCUMULATE, turn > 0 or step > 0)
                    slopes = CONSUMERS * buffer + side
                    if depth == KEYS:
                        a, b = rS[None, own, step, slopes], tK[None, 0, step, side]
                    else:
                        a, b = tK[None, 0, step, CONSUMERS * side + own], rS[None, 0, step, slopes]
                    cute.gemm(of_dq, into, a, b, into)
            warpgroup.commit_group()

        def add_dq(m: Int, head: Int) -> None:
            """Begins to add the own half of dQ to that in memory, through shared memory."""
            count = cute.size(accQ) // ADJACENT
            if t % WARPGROUP == 0:
                cute.arch.cp_async_bulk_wait_group(0, read=True)
            sync_consumer(own)
            for j in cute.range_constexpr(count):
                four = cute.local_tile(accQ, (ADJACENT,), (j,)).load().reshape((ADJACENT,))
                cute.local_tile(sAcc[None, own], (ADJACENT,), (j * WARPGROUP + t % WARPGROUP,)).store(four)
            cute.arch.fence_proxy("async.shared", space="cta")
            sync_consumer(own)
            if t % WARPGROUP == 0:
                to = mAcc[at * heads + head, config.tile_of(m, batch, starts), None]
                place, bytes = to.ptr(own * count * WARPGROUP * ADJACENT), 4 * count * WARPGROUP * ADJACENT
                add_in_memory(place, sAcc.ptr(0, own), bytes, op=CpReduceOp.ADD, type=CpReduceType.F32)
                cute.arch.cp_async_bulk_commit_group()

        def load_statistics(to: cute.Tensor, kind: int, stage: Int) -> None:
            """Loads a number for each of the thread's rows to all of its keys."""
            for i in cute.range_constexpr(size // 8):
                pair = cute.local_tile(sStats[None, stage], (2,), (kind * (size // 2) + 4 * i + t % 4,)).load()
                for r in cute.range_constexpr(cute.size(to, 0)):
                    cute.local_tile(to[r, None], (2,), (i,)).store(pair)

        def leave_out(m: Int) -> None:
            """Scores of keys after the last one, and after a row's own, do not count."""
            for r in cute.range_constexpr(2):
                key = first_own + places[2 * r][0]
                hidden = 0
                if config.causal:
                    hidden = key - past - m * size
                if is_ragged:
                    hidden = cute.where(key < keys, hidden, size)
                hidden = cute.Int32(hidden - places[0][1])
                for i in cute.range_constexpr(size // 4):
                    S[r, i] = cute.where(i // 2 * 8 + i % 2 < hidden, NEVER, S[r, i])

        accK.fill(0.0)
        accV.fill(0.0)
        if total > 0:
            pipe_k.consumer_wait(used_k)
            pipe_q.consumer_wait(used_q)
            warpgroup.fence()
            multiply_scores(accS, rK, rQ, used_q.index, False)
            pipe_v.consumer_wait(used_k)
            warpgroup.wait_group(0)
        m, head = cute.Int32(low), cute.Int32(head_k * shared)
        for i in cute.range(total):
            buffer = i % 2
            load_statistics(minus_lse, 0, used_q.index)
            load_statistics(D, 1, used_q.index)
            pipe_o.consumer_wait(used_o)
            warpgroup.fence()
            multiply_scores(accD, rV, rO, used_o.index, True)
            if config.causal or is_ragged:
                cuts = first_own + KEYS > keys
                if config.causal:
                    cuts = cuts | (first_own + KEYS - 1 > m * size + past)
                if cuts:
                    leave_out(m)
            S.store(exp2(cute.fma(S.load(), factor, minus_lse.load())))
            rP.store(accS.load().to(half))
            warpgroup.fence()
            multiply_sums(accV, aP, tO, used_o.index)
            warpgroup.wait_group(1)
            power = S if config.keeps_single else cute.composition(rP, by_key)
            D.store(power.load().to(single) * D.load())
            rD.store(accD.load().to(half))
            cute.copy(store, from_slopes, to_shared[None, None, None, CONSUMERS * buffer + own])
            cute.arch.fence_proxy("async.shared", space="cta")
            sync_consumer(own)
            cute.arch.mbarrier_arrive(ready.ptr(buffer, own))
            warpgroup.fence()
            multiply_sums(accK, aD, tQ, used_q.index)
            multiply_dq(buffer, i // 2 % 2)
            following = used_q.clone()
            following.advance()
            warpgroup.wait_group(1)  # dS is in no registers from here on
            pipe_o.consumer_release(used_o)
            used_o.advance()
            is_last = i + 1 == total
            if i + 1 < total:
                pipe_q.consumer_wait(following)
            # after the last tile its own scores once more, since a product under a condition is slow
            multiply_scores(accS, rK, rQ, cute.where(is_last, used_q.index, following.index), False)
            warpgroup.wait_group(1)
            add_dq(m, head)
            warpgroup.wait_group(0)
            pipe_q.consumer_release(used_q)
            used_q.advance()
            m, head = after(m, head)

        if t % WARPGROUP == 0:
            cute.arch.cp_async_bulk_wait_group(0)
        vector = cute.make_rmem_tensor((4,), cute.Int32)
        for acc, out, unit in ((accK, mDK, scale), (accV, mDV, 1.0)):
            rounded = cute.make_rmem_tensor_like(acc, half)
            rounded.store((acc.load() * unit).to(half))
            words = cute.recast_tensor(rounded, cute.Int32)
            for r in cute.range_constexpr(2):
                key, parts_of_row = first_own + to_places[2 * r][0], quarters(words, r, depth, t % 4)
                if key < keys:
                    to = out[at, first_k + key, head_k, None]
                    for b in cute.range_constexpr(len(parts_of_row)):
                        for i in cute.range_constexpr(4):
                            vector[i] = parts_of_row[b][i]
                        of_row = cute.local_tile(to, (8,), (4 * b + t % 4,))
                        cute.autovec_copy(cute.recast_tensor(vector, half), of_row)
