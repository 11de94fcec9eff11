# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""O = softmax(Q K^T * scale) V for each head, in f16 on Hopper (sm_90a): tensor copies, multiplications by warpgroups.

Q, K, V and O are (sequence, heads, D), with D contiguous: 64, 128 or 256. A block has one warpgroup that loads tiles by
tensor copies and two or three that multiply, 64 rows of one head each. These keep for each row the greatest score so
far, the sum of exponentials and the unfinished row of O. While one tile of keys becomes exponentials, the tensor cores
multiply the exponentials before by their values; of two warpgroups one multiplies while the other exponentiates (Shah
et al., FlashAttention-3, 2024).

    python examples/python/attention_sm90.py
    python examples/python/attention_sm90.py --device cuda --sequence 4096 --heads 32 --depth 128 --keys 176
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from attention import exp2, quad_reduce, reference
from common import Array, check, chosen, normal, parser, place

from tilefold import cute
from tilefold.cute import pipeline
from tilefold.cute.nvgpu import cpasync, warpgroup

WARPGROUP = 128
"""The threads of a warpgroup."""
NEVER = float("-inf")


@dataclass(frozen=True)
class Config:
    """The keys of a tile, the warpgroups that multiply, which have 64 rows each, and the stages of keys and values;
    whether keys after a row's own are left out.

    Where causal, blocks go through `group` heads at a time, the rows with most keys first. The defaults are for D = 64.
    """

    keys: int = 128
    consumers: int = 3
    stages: int = 2
    causal: bool = False
    group: int = 32

    @property
    def rows(self) -> int:
        """The rows of a block."""
        return 64 * self.consumers

    @property
    def threads(self) -> int:
        """The threads of a block."""
        return WARPGROUP * (1 + self.consumers)

    @property
    def registers(self) -> tuple[int, int]:
        """The registers of a thread that loads and of one that multiplies."""
        return (24, 240) if self.consumers == 2 else (32, 160)


DEFAULT = Config()


@cute.jit
def turn(group: Any, config: cute.Constexpr[Config]) -> None:
    """Two warpgroups take turns: waits for that of `group`."""
    if config.consumers == 2:
        if group == 0:
            cute.arch.barrier(barrier_id=1, number_of_threads=2 * WARPGROUP)
        else:
            cute.arch.barrier(barrier_id=2, number_of_threads=2 * WARPGROUP)


@cute.jit
def next_turn(group: Any, config: cute.Constexpr[Config]) -> None:
    """It is the turn of the other warpgroup than `group`."""
    if config.consumers == 2:
        if group == 0:
            cute.arch.barrier_arrive(barrier_id=2, number_of_threads=2 * WARPGROUP)
        else:
            cute.arch.barrier_arrive(barrier_id=1, number_of_threads=2 * WARPGROUP)


@cute.kernel(min_blocks=1)
def attention_kernel(
    mQ: cute.Tensor,
    mK: cute.Tensor,
    mV: cute.Tensor,
    mOut: cute.Tensor,
    scale: cute.Float32,
    config: cute.Constexpr[Config],
):
    t, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    blocks, _, _ = cute.arch.grid_dim()
    warp = cute.arch.make_warp_uniform(t // 32)
    group = cute.arch.make_warp_uniform(t // WARPGROUP)
    sequence, heads, depth = mQ.shape
    rows, keys = config.rows, config.keys
    tiles, all_keys = cute.ceil_div(sequence, rows), cute.ceil_div(sequence, keys)

    # shared memory, and the tensor copies that fill it
    by_k = warpgroup.make_smem_layout_atom(warpgroup.SmemLayoutAtomKind.K_SW128, cute.Float16)
    by_mn = warpgroup.make_smem_layout_atom(warpgroup.SmemLayoutAtomKind.MN_SW128, cute.Float16)
    layout_q = cute.tile_to_shape(by_k, (rows, depth), order=(0, 1))
    layout_k = cute.tile_to_shape(by_k, (keys, depth, config.stages), order=(0, 1, 2))
    layout_v = cute.tile_to_shape(by_mn, (depth, keys, config.stages), order=(1, 0, 2))
    sQ = cute.make_smem_tensor(layout_q, cute.Float16, alignment=1024)
    sK = cute.make_smem_tensor(layout_k, cute.Float16, alignment=1024)
    sV = cute.make_smem_tensor(layout_v, cute.Float16, alignment=1024)
    load = cpasync.CopyBulkTensorTileG2SOp()
    load_q, gQ = cpasync.make_tiled_tma_atom(load, cute.select(mQ, [0, 2, 1]), layout_q, (rows, depth))
    load_k, gK = cpasync.make_tiled_tma_atom(
        load, cute.select(mK, [0, 2, 1]), cute.slice_(layout_k, (None, None, 0)), (keys, depth)
    )
    load_v, gV = cpasync.make_tiled_tma_atom(
        load, cute.select(mV, [2, 0, 1]), cute.slice_(layout_v, (None, None, 0)), (depth, keys)
    )

    def parts(atom: Any, shared: Any, coordinates: Any, shape: Any) -> Any:
        """A tile in shared memory and those of a tensor, as an instruction moves them."""
        tiled = cute.local_tile(coordinates, shape, (None, None, None))
        one = cute.make_layout(1)
        return cpasync.tma_partition(atom, 0, one, cute.group_modes(shared, 0, 2), cute.group_modes(tiled, 0, 2))

    tQsQ, tQgQ = parts(load_q, sQ, gQ, (rows, depth))
    tKsK, tKgK = parts(load_k, sK, gK, (keys, depth))
    tVsV, tVgV = parts(load_v, sV, gV, (depth, keys))

    one, readers = (pipeline.CooperativeGroup(pipeline.Agent.Thread, n) for n in (1, 4 * config.consumers))
    tile_bytes = 2 * keys * depth
    pipe_q = pipeline.PipelineTmaAsync.create(
        num_stages=1, producer_group=one, consumer_group=readers, tx_count=2 * rows * depth
    )
    pipe_k = pipeline.PipelineTmaAsync.create(
        num_stages=config.stages, producer_group=one, consumer_group=readers, tx_count=tile_bytes
    )
    pipe_v = pipeline.PipelineTmaAsync.create(
        num_stages=config.stages, producer_group=one, consumer_group=readers, tx_count=tile_bytes
    )

    def place_of(number: Any) -> Any:
        """The rows and the head of a tile, and how many tiles of keys it needs."""
        if not config.causal:
            return number % tiles, number // tiles, all_keys
        first = number // (tiles * config.group) * config.group
        together = min(heads - first, config.group)
        left = number - first * tiles
        m = tiles - 1 - left // together
        return m, first + left % together, min(all_keys, cute.ceil_div((m + 1) * rows, keys))

    if group == 0:
        cute.arch.setmaxregister_decrease(config.registers[0])
        if warp == 0:
            for atom in (load_q, load_k, load_v):
                cpasync.prefetch_descriptor(atom)
            fill_q = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, 1)
            fill = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, config.stages)
            for number in cute.range(block, tiles * heads, blocks):
                m, head, count = place_of(number)
                pipe_q.producer_acquire(fill_q)
                with cute.arch.elect_one():
                    cute.copy(
                        load_q, tQgQ[None, m, 0, head], tQsQ[None], tma_bar_ptr=pipe_q.producer_get_barrier(fill_q)
                    )
                pipe_q.producer_commit(fill_q)
                fill_q.advance()
                for j in cute.range(count):
                    tile = count - 1 - j
                    pipe_k.producer_acquire(fill)
                    with cute.arch.elect_one():
                        bar = pipe_k.producer_get_barrier(fill)
                        cute.copy(load_k, tKgK[None, tile, 0, head], tKsK[None, fill.index], tma_bar_ptr=bar)
                    pipe_k.producer_commit(fill)
                    pipe_v.producer_acquire(fill)
                    with cute.arch.elect_one():
                        bar = pipe_v.producer_get_barrier(fill)
                        cute.copy(load_v, tVgV[None, 0, tile, head], tVsV[None, fill.index], tma_bar_ptr=bar)
                    pipe_v.producer_commit(fill)
                    fill.advance()
    else:
        cute.arch.setmaxregister_increase(config.registers[1])
        mine, own = t - WARPGROUP, group - 1
        K, MN = warpgroup.OperandMajorMode.K, warpgroup.OperandMajorMode.MN
        SMEM, RMEM = warpgroup.OperandSource.SMEM, warpgroup.OperandSource.RMEM
        half, single = cute.Float16, cute.Float32
        qk = cute.make_tiled_mma(
            warpgroup.MmaF16BF16Op(half, single, (64, keys, 16), SMEM, K, K), (config.consumers, 1, 1)
        )
        pv = cute.make_tiled_mma(
            warpgroup.MmaF16BF16Op(half, single, (64, depth, 16), RMEM, K, MN), (config.consumers, 1, 1)
        )
        thread_qk, thread_pv = qk.get_slice(mine), pv.get_slice(mine)
        rQ = qk.make_fragment_A(thread_qk.partition_A(sQ))  # (MMA,MMA_M,steps)
        rK = qk.make_fragment_B(thread_qk.partition_B(sK))  # (MMA,MMA_N,steps,stages)
        rV = pv.make_fragment_B(thread_pv.partition_B(sV))
        accS = qk.make_fragment_C(thread_qk.partition_C(cute.make_identity_tensor((rows, keys))))
        accO = pv.make_fragment_C(thread_pv.partition_C(cute.make_identity_tensor((rows, depth))))
        rP = cute.make_rmem_tensor_like(accS, half)
        aP = cute.composition(rP, cute.make_layout(((2, 2, 2), 1, keys // 16), stride=((1, 2, 4), 0, 8)))
        by_rows = cute.make_layout((2, (2, keys // 8)), stride=(2, (1, 4)))
        S = cute.composition(accS, by_rows)
        by_rows_of_o = cute.make_layout((2, (2, depth // 8)), stride=(2, (1, 4)))
        out = cute.composition(accO, by_rows_of_o)
        largest = cute.make_rmem_tensor((2, 1), single)
        total = cute.make_rmem_tensor((2, 1), single)
        shrink = cute.make_rmem_tensor((2, 1), single)
        factor = scale * math.log2(math.e)
        places = thread_qk.partition_C(cute.make_identity_tensor((rows, keys)))
        used_q = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, 1)
        used_k = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, config.stages)
        used_v = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, config.stages)

        def multiply_qk(stage: Any) -> None:
            for step in cute.range_constexpr(depth // 16):
                qk.set(warpgroup.Field.ACCUMULATE, step > 0)
                cute.gemm(qk, accS, rQ[None, None, step], rK[None, None, step, stage], accS)
            warpgroup.commit_group()

        def multiply_pv(stage: Any, accumulate: Any) -> None:
            for step in cute.range_constexpr(keys // 16):
                pv.set(warpgroup.Field.ACCUMULATE, accumulate if step == 0 else True)
                cute.gemm(pv, accO, aP[None, None, step], rV[None, None, step, stage], accO)
            warpgroup.commit_group()

        def exponentials(m: Any, tile: Any, masked: bool) -> None:
            """Scores become exponentials in their place; `shrink` is what the sums before are worth now."""
            if masked:
                for i in cute.range_constexpr(cute.size(accS)):
                    row, key = places[i]
                    row, key = row + m * rows, key + tile * keys
                    there = (key <= row) & (key < sequence) if config.causal else key < sequence
                    accS[i] = cute.where(there, accS[i], NEVER)
            before = largest.load()
            top = quad_reduce(
                S.load().reduce(cute.ReductionOp.MAX, before, reduction_profile=(None, 1), keepdims=True),
                cute.ReductionOp.MAX,
            )
            largest.store(top)
            if config.causal:  # a row may have had no key yet
                top = cute.where(top == NEVER, 0.0, top)
            power = exp2(cute.fma(S.load(), factor, -top * factor))
            shrink.store(exp2((before - top) * factor))
            S.store(power)
            total.store(
                power.reduce(
                    cute.ReductionOp.ADD, total.load() * shrink.load(), reduction_profile=(None, 1), keepdims=True
                )
            )

        if config.consumers == 2 and own == 1:
            cute.arch.barrier_arrive(barrier_id=1, number_of_threads=2 * WARPGROUP)
        for number in cute.range(block, tiles * heads, blocks):
            m, head, count = place_of(number)
            largest.fill(NEVER)
            total.fill(0.0)
            pipe_q.consumer_wait(used_q)

            # the last keys
            pipe_k.consumer_wait(used_k)
            turn(own, config)
            warpgroup.fence()
            multiply_qk(used_k.index)
            next_turn(own, config)
            warpgroup.wait_group(0)
            pipe_k.consumer_release(used_k)
            used_k.advance()
            exponentials(m, count - 1, masked=True)
            rP.store(accS.load().to(half))

            def tile_of_keys(tile: Any, accumulate: Any, masked: bool, m: Any = m) -> None:
                pipe_k.consumer_wait(used_k)
                turn(own, config)
                warpgroup.fence()
                multiply_qk(used_k.index)
                pipe_v.consumer_wait(used_v)
                multiply_pv(used_v.index, accumulate)
                next_turn(own, config)
                warpgroup.wait_group(1)
                pipe_k.consumer_release(used_k)
                used_k.advance()
                exponentials(m, tile, masked)
                warpgroup.wait_group(0)
                pipe_v.consumer_release(used_v)
                used_v.advance()
                rP.store(accS.load().to(half))
                out.store(out.load() * shrink.load())

            masked = 0
            if config.causal:  # the other tiles with keys after some row's own
                masked = max(count - 1 - m * rows // keys, 0)
                for j in cute.range(masked):
                    tile_of_keys(count - 2 - j, j > 0, masked=True)
            for j in cute.range(masked, count - 1):
                tile_of_keys(count - 2 - j, j > 0, masked=False)

            pipe_q.consumer_release(used_q)
            used_q.advance()
            pipe_v.consumer_wait(used_v)
            warpgroup.fence()
            multiply_pv(used_v.index, count > 1)
            inverse = cute.arch.approx("rcp", quad_reduce(total.load(), cute.ReductionOp.ADD))
            warpgroup.wait_group(0)
            pipe_v.consumer_release(used_v)
            used_v.advance()
            rO = cute.make_rmem_tensor_like(accO, half)
            to = cute.composition(rO, by_rows_of_o)
            to.store((out.load() * inverse).to(half))
            gO = cute.local_tile(mOut[None, head, None], (rows, depth), (m, 0))
            tOgO = cute.composition(thread_pv.partition_C(gO), by_rows_of_o)
            for r in cute.range_constexpr(2):
                if m * rows + places[2 * r][0] < sequence:
                    cute.basic_copy(to[r, None], tOgO[r, None])


def attention(
    Q: Array, K: Array, V: Array, Out: Array, config: Config = DEFAULT, device: str = "auto", blocks: int = 132
) -> None:
    """O = softmax(Q K^T / sqrt(D)) V for each head by at most `blocks` blocks, one for each multiprocessor."""
    sequence, heads, depth = Q.shape
    grid = min(blocks, -(-sequence // config.rows) * heads)
    call = attention_kernel(Q, K, V, Out, 1 / math.sqrt(depth), config)
    call.launch(grid=(grid, 1, 1), block=(config.threads, 1, 1), device=device)


def main(arguments: list[str] | None = None) -> None:
    made = parser("attention on Hopper", sequence=256, heads=2, depth=64, keys=64, consumers=2, causal=0, blocks=2)
    options = made.parse_args(arguments)
    device = chosen(options.device)
    shape = (options.sequence, options.heads, options.depth)
    hQ, hK, hV = (normal(seed, shape) for seed in range(3))
    Q, K, V, Out = place(device, hQ, hK, hV, np.empty_like(hQ))
    config = Config(options.keys, options.consumers, causal=bool(options.causal))
    attention(Q, K, V, Out, config, device, options.blocks)
    check("O", Out, reference(hQ, hK, hV, bool(options.causal)))


if __name__ == "__main__":
    main()
