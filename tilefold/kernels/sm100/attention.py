# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""O = softmax(Q K^T * scale) V for each head on Blackwell (sm_100a), in f16 or bf16: TMA copies, and scores,
exponentials and sums in tensor memory. No GPU of this kind has run it; docs/blackwell.md leads to it.

Q and O are (batch, rows, heads, D), K and V (batch, keys, heads, D) with D contiguous, 64 or 128. K and V may have
fewer heads. A block makes 256 rows of a head. Warp 9 loads them, and tiles of 128 keys and values to stages of shared
memory. A thread of warp 8 multiplies. Two groups of four warps have 128 rows each, a thread a row: they load scores
from tensor memory, store their exponentials P over the scores, where they are an operand, and correct O when
the greatest score of a row has grown too much for P. While one group exponentiates, the tensor core multiplies for the
other one (FlashAttention-4, arXiv 2603.05451).

The function unit computes 16 exponentials a clock, and 128 x 128 scores take it longer than their products. So a part
of them is a polynomial by FMA.
"""

import math
from dataclasses import dataclass
from typing import Any

from tilefold import cute
from tilefold.cute import pipeline, utils
from tilefold.cute.nvgpu import cpasync, tcgen05
from tilefold.cute.typing import Int
from tilefold.cute.utils import blackwell_helpers as sm100
from tilefold.cutlass.experimental import primitives as prims

from ..arguments import Array
from ..replay import Launch, Launches

ROWS, KEYS, GROUP = 128, 128, 128
"""The rows of a group, the keys of a tile, the threads of a group."""
MULTIPLIES, LOADS, WARPS = 8, 9, 12
"""The numbers of the warps beside the two groups, and their count: registers go to groups of four warps."""
CHUNK = 32
"""The scores that become P at a time: registers hold no more of both."""
COLUMNS = 512
"""All of tensor memory: scores of two groups, which their P replaces, and two O of up to 128 columns."""
ROUND = 1.5 * 2**23
"""A float to which another one is added to be rounded to an integer, which is then in the last bits of the sum."""
POLYNOMIAL = 0.05517167, 0.24261113, 0.69326099, 0.99992807
"""2 ** x for x from -1/2 to 1/2 with a relative error of at most 7.5e-5, from x ** 3 on (a minimax polynomial)."""


@dataclass(frozen=True)
class Config:
    """The stages of keys and of values; of how many exponentials one is a polynomial, or 0; by how many powers of 2 the
    greatest score of a row may grow until O is corrected: with 8 P is at most 256.
    """

    stages: int = 2
    polynomial: int = 4
    slack: float = 8.0


def after() -> None:
    """Orders later uses of tensor memory after a wait."""
    prims.tcgen05_fence(prims.Tcgen05Fence.AFTER_THREAD_SYNC)


def before() -> None:
    """Orders earlier uses of tensor memory before an arrival."""
    prims.tcgen05_fence(prims.Tcgen05Fence.BEFORE_THREAD_SYNC)


@cute.jit
def correct(load: Any, store: Any, sums: Any, factor: Any) -> None:
    """Multiplies the row of a thread in tensor memory, some columns at a time: the registers have the scores, too."""
    source, to = (
        cute.group_modes(part, 1, cute.rank(part)) for part in (load.partition_S(sums), store.partition_D(sums))
    )
    held = cute.make_rmem_tensor(((CHUNK, 1),), cute.Float32)
    for i in cute.range_constexpr(cute.size(source, mode=[1])):
        cute.copy(load, source[None, i], held)
        cute.arch.fence_view_async_tmem_load()
        held.store(held.load() * factor)
        cute.copy(store, held, to[None, i])
    cute.arch.fence_view_async_tmem_store()


@cute.jit
def exp2_by_fma(x: Any) -> Any:
    """2 ** x by a polynomial, for x up to 127; below -125 something next to 0."""
    x = cute.math.max(x, -125.0)
    rounded = x + ROUND
    rest = x - (rounded - ROUND)
    value = POLYNOMIAL[0]
    for coefficient in POLYNOMIAL[1:]:
        value = cute.fma(rest, value, coefficient)
    exponent = cute.arch.bitcast(rounded, cute.Int32) << 23
    return cute.arch.bitcast(cute.arch.bitcast(value, cute.Int32) + exponent, cute.Float32)


@cute.jit
def exponentials(scores: Any, factor: Any, top: Any, config: cute.Constexpr) -> None:
    """Replaces scores of a row by 2 ** (factor * score - top)."""
    every = config.polynomial or 1
    parts = cute.composition(scores, cute.make_layout((every, CHUNK // every)))
    for i in cute.range_constexpr(every):
        x = cute.fma(parts[i, None].load(), factor, -top)
        by_fma = config.polynomial and i == every - 1
        parts[i, None].store(exp2_by_fma(x) if by_fma else cute.arch.approx("ex2", x, ftz=True))


@cute.kernel(min_blocks=1)
def attention_kernel(
    mQ: cute.Tensor,
    mK: cute.Tensor,
    mV: cute.Tensor,
    mOut: cute.Tensor,
    scale: cute.Float32,
    config: cute.Constexpr,
) -> None:
    half, single = mQ.element_type, cute.Float32
    _, _, heads, depth = mQ.shape
    _, length, heads_k, _ = mK.shape
    t = cute.arch.thread_idx()[0]
    warp = cute.arch.make_warp_uniform(t // 32)
    m, head, batch = cute.arch.block_idx()
    head_k = head // (heads // heads_k)
    count = length // KEYS

    # S = Q K^T from shared memory, and O = P V with P from tensor memory
    K, MN, one_block = cute.nvgpu.OperandMajorMode.K, cute.nvgpu.OperandMajorMode.MN, tcgen05.CtaGroup.ONE
    qk_tile, pv_tile = (ROWS, KEYS, depth), (ROWS, depth, KEYS)
    qk = sm100.make_trivial_tiled_mma(half, half, K, K, single, one_block, qk_tile[:2])
    pv = sm100.make_trivial_tiled_mma(half, half, K, MN, single, one_block, pv_tile[:2], tcgen05.OperandSource.TMEM)
    of_q = sm100.make_smem_layout_a(qk, qk_tile, half, 2)
    of_k = sm100.make_smem_layout_b(qk, qk_tile, half, config.stages)
    of_v = sm100.make_smem_layout_b(pv, pv_tile, half, config.stages)
    sQ, sK, sV = (cute.make_smem_tensor(layout, half, 1024) for layout in (of_q, of_k, of_v))

    load = cpasync.CopyBulkTensorTileG2SOp()
    stage = (None, None, None, 0)
    q_map, q_all = cute.nvgpu.make_tiled_tma_atom_A(
        load, cute.select(mQ, [1, 3, 2, 0]), cute.slice_(of_q, stage), qk_tile, qk
    )
    k_map, k_all = cute.nvgpu.make_tiled_tma_atom_B(
        load, cute.select(mK, [1, 3, 2, 0]), cute.slice_(of_k, stage), qk_tile, qk
    )
    v_map, v_all = cute.nvgpu.make_tiled_tma_atom_B(
        load, cute.select(mV, [3, 1, 2, 0]), cute.slice_(of_v, stage), pv_tile, pv
    )

    def parts(atom: Any, shared: cute.Tensor, tiles: object) -> Any:
        """Both sides of a TMA copy: stages of shared memory, and tiles."""
        whole = cute.group_modes(shared, 0, 3), cute.group_modes(tiles, 0, 3)
        return cpasync.tma_partition(atom, 0, cute.make_layout(1), *whole)

    qk_part, pv_part = qk.get_slice(0), pv.get_slice(0)
    tQsQ, tQgQ = parts(q_map, sQ, qk_part.partition_A(cute.local_tile(q_all, (ROWS, depth), (None, 0, head, batch))))
    tKsK, tKgK = parts(k_map, sK, qk_part.partition_B(cute.local_tile(k_all, (KEYS, depth), (None, 0, head_k, batch))))
    tVsV, tVgV = parts(v_map, sV, pv_part.partition_B(cute.local_tile(v_all, (depth, KEYS), (0, None, head_k, batch))))

    # tiles come by pipelines; for each group: its scores are complete, its P is stored, its O is complete
    one = pipeline.CooperativeGroup(pipeline.Agent.Thread)
    (fill_rows, rows), (fill_keys, keys), (fill_values, values) = (
        pipeline.PipelineTmaUmma.create(
            num_stages=stages, producer_group=one, consumer_group=one,
            tx_count=cute.size_in_bytes(half, cute.slice_(layout, stage)),
        ).make_participants()
        for layout, stages in ((of_q, 2), (of_k, config.stages), (of_v, config.stages))
    )  # fmt: skip
    scored, stored, summed = (cute.make_smem_tensor(2, cute.Int64).iterator for _ in range(3))
    if t == 0:
        for i in cute.range_constexpr(2):
            cute.arch.mbarrier_init(scored + i, 1)
            cute.arch.mbarrier_init(stored + i, GROUP)
            cute.arch.mbarrier_init(summed + i, 1)
        cute.arch.mbarrier_init_fence()
    cute.arch.sync_threads()
    meet, done = (pipeline.NamedBarrier(number, 2 * GROUP + 32) for number in (1, 2))
    tmem = utils.TmemAllocator(cute.make_smem_tensor(1, cute.Int32).iterator, meet, allocator_warp_id=MULTIPLIES)

    laid_s = qk.make_fragment_C(qk.partition_shape_C(qk_tile[:2])).layout
    laid_o = pv.make_fragment_C(pv.partition_shape_C(pv_tile[:2])).layout

    if warp >= MULTIPLIES:
        cute.arch.setmaxregister_decrease(40)
        if warp == LOADS:
            for i in cute.range_constexpr(2):
                room = fill_rows.acquire_and_advance()
                cute.copy(q_map, tQgQ[None, 2 * m + i], tQsQ[None, room.index], tma_bar_ptr=room.barrier)
            for j in cute.range(count):
                room = fill_keys.acquire_and_advance()
                cute.copy(k_map, tKgK[None, j], tKsK[None, room.index], tma_bar_ptr=room.barrier)
                room = fill_values.acquire_and_advance()
                cute.copy(v_map, tVgV[None, j], tVsV[None, room.index], tma_bar_ptr=room.barrier)
            fill_rows.tail()
            fill_keys.tail()
            fill_values.tail()
        elif warp == MULTIPLIES:
            tmem.allocate(COLUMNS)
            tmem.relinquish_alloc_permit()
            tmem.wait_for_alloc()
            start = tmem.retrieve_ptr(single)
            rQ, rK, rV = qk.make_fragment_A(sQ), qk.make_fragment_B(sK), pv.make_fragment_B(sV)
            shape_p = sm100.make_smem_layout_a(pv, pv_tile, half, 1)
            laid_p = pv.make_fragment_A(cute.make_tensor(start, shape_p.outer))[None, None, None, 0].layout

            def multiply_qk(g: int, key: Int) -> None:
                """Begins the scores of a group."""
                acc = cute.make_tensor(start + g * KEYS, laid_s)
                for k in cute.range_constexpr(depth // 16):
                    qk.set(tcgen05.Field.ACCUMULATE, k > 0)
                    cute.gemm(qk, acc, rQ[None, None, k, g], rK[None, None, k, key.index], acc)
                tcgen05.commit(scored + g)

            def multiply_pv(g: int, value: Any, accumulate: object) -> None:
                """Begins the product of a group's P with values."""
                acc = cute.make_tensor(start + (2 * KEYS + g * ROWS), laid_o)
                P = cute.make_tensor(cute.recast_ptr(start + g * KEYS, dtype=half), laid_p)
                for k in cute.range_constexpr(KEYS // 16):
                    pv.set(tcgen05.Field.ACCUMULATE, accumulate if k == 0 else True)
                    cute.gemm(pv, acc, P[None, None, k], rV[None, None, k, value.index], acc)
                tcgen05.commit(summed + g)

            key = keys.wait_and_advance()
            for g in cute.range_constexpr(2):
                row = rows.wait_and_advance()
                multiply_qk(g, key)
                row.release()
            key.release()
            for j in cute.range(count - 1):
                value = values.wait_and_advance()
                key = keys.wait_and_advance()
                for g in cute.range_constexpr(2):
                    cute.arch.mbarrier_wait(stored + g, j % 2)
                    after()
                    multiply_pv(g, value, j > 0)
                    cute.arch.mbarrier_wait(summed + g, j % 2)  # P is where the next scores come
                    after()
                    multiply_qk(g, key)
                value.release()
                key.release()
            value = values.wait_and_advance()
            for g in cute.range_constexpr(2):
                cute.arch.mbarrier_wait(stored + g, (count - 1) % 2)
                after()
                multiply_pv(g, value, count > 1)
            value.release()
            done.arrive_and_wait()
            tmem.free(start)
    else:
        cute.arch.setmaxregister_increase(232)
        g = cute.arch.make_warp_uniform(t // GROUP)
        own = t % GROUP
        tmem.wait_for_alloc()
        start = tmem.retrieve_ptr(single)
        tS = cute.make_tensor(start + g * KEYS, laid_s)
        tP = cute.make_tensor(start + g * KEYS, cute.composition(laid_s, cute.make_layout((ROWS, KEYS // 2))))
        tO = cute.make_tensor(start + (2 * KEYS + g * ROWS), laid_o)
        repeat, of_chunk = tcgen05.Repetition.x32, tcgen05.Repetition.x16
        load_s = tcgen05.make_tmem_copy(cute.make_copy_atom(tcgen05.Ld32x32bOp(repeat), single), tS).get_slice(own)
        store_p = tcgen05.make_tmem_copy(cute.make_copy_atom(tcgen05.St32x32bOp(of_chunk), single), tP).get_slice(own)
        load_o = tcgen05.make_tmem_copy(cute.make_copy_atom(tcgen05.Ld32x32bOp(repeat), single), tO).get_slice(own)
        store_o = tcgen05.make_tmem_copy(cute.make_copy_atom(tcgen05.St32x32bOp(repeat), single), tO).get_slice(own)
        of_row = load_s.partition_D(qk_part.partition_C(cute.make_identity_tensor(qk_tile[:2]))).shape
        loaded = cute.make_rmem_tensor(of_row, single)
        scores = cute.composition(loaded, cute.make_layout((CHUNK, KEYS // CHUNK)))
        packed = cute.make_rmem_tensor(((CHUNK // 2, 1),), single)
        P = cute.composition(cute.recast_tensor(packed, half), cute.make_layout(CHUNK))
        to_p = store_p.partition_D(tP)
        factor = scale * math.log2(math.e)
        top, total = cute.Float32(float("-inf")), cute.Float32(0.0)
        for j in cute.range(count):
            cute.arch.mbarrier_wait(scored + g, j % 2)
            after()
            cute.copy(load_s, load_s.partition_S(tS), loaded)
            cute.arch.fence_view_async_tmem_load()
            largest = loaded.load().reduce(cute.ReductionOp.MAX, float("-inf"), 0) * factor
            before_top = top
            top = cute.where(largest > before_top + config.slack, largest, before_top)
            if (j > 0) & cute.arch.vote_any_sync(top != before_top):
                shrink = cute.exp2(before_top - top)
                total = total * shrink
                correct(load_o, store_o, tO, shrink)
            for i in cute.range_constexpr(KEYS // CHUNK):
                chunk = scores[None, i]
                exponentials(chunk, factor, top, config)
                total = chunk.load().reduce(cute.ReductionOp.ADD, total, 0)
                P.store(chunk.load().to(half))
                cute.copy(store_p, packed, to_p[None, 0, i])
            cute.arch.fence_view_async_tmem_store()
            before()
            cute.arch.mbarrier_arrive(stored + g)

        cute.arch.mbarrier_wait(summed + g, (count - 1) % 2)
        after()
        gO = cute.local_tile(mOut[batch, None, head, None], (ROWS, depth), (2 * m + g, 0))
        tOgO = load_o.partition_D(pv_part.partition_C(gO))
        from_o, to = (cute.group_modes(part, 1, cute.rank(part)) for part in (load_o.partition_S(tO), tOgO))
        out, result = (cute.make_rmem_tensor(((CHUNK, 1),), dtype) for dtype in (single, half))
        for i in cute.range_constexpr(depth // CHUNK):
            cute.copy(load_o, from_o[None, i], out)
            cute.arch.fence_view_async_tmem_load()
            result.store((out.load() * (1.0 / total)).to(half))
            cute.autovec_copy(result, to[None, i])
        before()
        done.arrive_and_wait()


def is_whole(q: Array, k: Array) -> bool:
    """Whether rows, keys and depth are those of whole tiles."""
    return q.shape[1] % (2 * ROWS) == 0 and k.shape[1] % KEYS == 0 and q.shape[3] in (64, 128)


def forward(out: Array, q: Array, k: Array, v: Array, scale: float, config: Config = Config()) -> Launches:
    """O, of whole tiles: the rows are a multiple of 256, the keys one of 128, the depth is 64 or 128."""
    batch, rows, heads, _ = q.shape
    yield Launch(attention_kernel, (q, k, v, out, scale, config), (rows // (2 * ROWS), heads, batch), 32 * WARPS)


def attention(
    Q: Array, K: Array, V: Array, Out: Array, config: Config = Config(), device: str = "auto", **options: object
) -> None:
    """O = softmax(Q K^T / sqrt(D)) V for each head; see `forward`."""
    for launch in forward(Out, Q, K, V, 1 / math.sqrt(Q.shape[3]), config):
        if isinstance(launch, Launch):
            launch.run(Q, device, **options)
