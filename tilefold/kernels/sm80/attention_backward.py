# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The gradients of attention (Dao, FlashAttention-2, 2023), each by blocks that own its rows: no atomics, so that every
launch gives the same bits.

One kernel serves both kinds of blocks. Those of Q own rows and go through the tiles of keys; those of K and V own keys
and go through the tiles of rows of all heads of Q that share them, with everything transposed. Both compute the
exponentials of a tile of scores again, from the logarithms of their sums that the forward kernel leaves.
"""

from dataclasses import dataclass
from typing import Any

from tilefold import cute
from tilefold.cute.typing import Int

from ..softmax_parts import exp2
from .parts import Loads, Mask, Warps, by_rows, rows_of_head, sequence, shared_layout

WARPS = 4
TILE = 64
"""The rows or keys of a block, and of a tile that it goes through."""
THREADS = 32 * WARPS
STAGES = 2


@dataclass(frozen=True)
class Backward:
    """Whether blocks own keys, or else rows; and which scores count."""

    of_keys: bool
    mask: Mask


@cute.kernel
def delta_kernel(mOut: cute.Tensor, mDOut: cute.Tensor, mDelta: cute.Tensor):
    """The sum of O * dO of each row: a warp for each row of a head."""
    t, block = cute.arch.thread_idx()[0], cute.arch.block_idx()[0]
    _, rows, heads, depth = mOut.shape
    item = block * (THREADS // 32) + t // 32
    row, left = item % rows, item // rows
    head, batch = left % heads, left // heads
    if batch < mOut.shape[0]:
        total = cute.Float32(0)
        for i in range(depth // 64):
            o, do = (
                cute.local_tile(x[batch, row, head, None], (2,), (32 * i + t % 32,)).load().to(cute.Float32)
                for x in (mOut, mDOut)
            )
            total = total + (o * do).reduce(cute.ReductionOp.ADD)
        total = cute.arch.warp_reduction(total, cute.ReductionOp.ADD)
        if t % 32 == 0:
            mDelta[batch, head, row] = total


@cute.kernel
def attention_backward_kernel(
    mQ: cute.Tensor,
    mK: cute.Tensor,
    mV: cute.Tensor,
    mDOut: cute.Tensor,
    mLse: cute.Tensor,
    mDelta: cute.Tensor,
    mDX: cute.Tensor,
    mDV: cute.Tensor | None,
    scale: cute.Float32,
    config: cute.Constexpr[Backward],
    starts: cute.Tensor | None = None,
    starts_k: cute.Tensor | None = None,
):
    number, own_head, batch = cute.arch.block_idx()
    half, of_keys = mQ.element_type, config.of_keys
    depth, shared = mQ.shape[3], mQ.shape[2] // mK.shape[2]
    at, first, rows = sequence(mQ, batch, starts)
    _, first_k, keys = sequence(mK, batch, starts_k)

    def part(tensor: Any, head: Int, begin: Int, count: Int) -> Any:
        return rows_of_head(tensor, at, head, begin, count)

    def statistic(tensor: cute.Tensor, head: Int) -> Any:
        """A number for each row."""
        return cute.make_tensor(cute.domain_offset(first, tensor[at, head, None]).iterator, cute.make_layout(rows))

    # shared memory: the own tiles stay, the others have stages
    sX, sY = (cute.make_smem_tensor(shared_layout(TILE, depth), half, alignment=1024)[None, None, 0] for _ in range(2))
    sA, sB = (cute.make_smem_tensor(shared_layout(TILE, depth, STAGES), half, alignment=1024) for _ in range(2))
    loads, warps = Loads(half, THREADS, TILE, depth), Warps(half, WARPS)
    mine = (mK, mV) if of_keys else (mQ, mDOut)
    others = (mQ, mDOut) if of_keys else (mK, mV)
    begin, count = (first_k, keys) if of_keys else (first, rows)
    begin_others, count_others = (first, rows) if of_keys else (first_k, keys)
    tiles = cute.ceil_div(count_others, TILE)
    low, high = config.mask.others(number * TILE, TILE, rows, keys, TILE, tiles, of_keys)
    turns = cute.math.max(high - low, 0)
    if number * TILE < count:
        for tensor, to in zip(mine, (sX, sY), strict=True):
            loads.begin(part(tensor, own_head, begin, count), number, to)

        def head_of(turn: Int) -> Any:
            return own_head * shared + turn // cute.math.max(turns, 1) if of_keys else own_head // shared

        def fetch(turn: Int) -> None:
            """Begins to load the tiles of a turn."""
            for tensor, to in zip(others, (sA, sB), strict=True):
                matrix = part(tensor, head_of(turn), begin_others, count_others)
                loads.begin(matrix, low + turn % cute.math.max(turns, 1), to[None, None, turn % STAGES])

        total = turns * (shared if of_keys else 1)
        if total > 0:
            fetch(0)
        cute.arch.cp_async_commit_group()
        of_x, of_y = warps.sums(TILE, depth), warps.sums(TILE, depth)
        of_x.fill(0.0)
        of_y.fill(0.0)
        scores, slopes = warps.sums(TILE, TILE), warps.sums(TILE, TILE)
        places = by_rows(warps.places(TILE, TILE))
        S, D = by_rows(scores), by_rows(slopes)
        factor = scale * 1.4426950408889634

        for turn in cute.range(total):
            cute.arch.cp_async_wait_group(0)
            cute.arch.sync_threads()
            if turn + 1 < total:
                fetch(turn + 1)
            cute.arch.cp_async_commit_group()
            stage, other = turn % STAGES, low + turn % cute.math.max(turns, 1)
            scores.fill(0.0)
            slopes.fill(0.0)
            warps.multiply(scores, sX, sA, stage)
            warps.multiply(slopes, sY, sB, stage)
            head = head_of(turn) if of_keys else own_head
            lse, delta = statistic(mLse, head), statistic(mDelta, head)
            for r in cute.range_constexpr(2):
                for c in cute.range_constexpr(TILE // 4):
                    own_at, other_at = number * TILE + places[r, c][0], other * TILE + places[r, c][1]
                    row, key = (other_at, own_at) if of_keys else (own_at, other_at)
                    inside = config.mask.sees(row, key, rows, keys)
                    there = cute.math.min(row, rows - 1)
                    power = exp2(cute.fma(S[r, c], factor, -lse[there]))
                    S[r, c] = cute.where(inside, power, 0.0)
                    D[r, c] = cute.where(inside, power * (D[r, c] - delta[there]), 0.0)
            warps.multiply_turned(of_x, slopes, sA, stage)
            if of_keys:
                warps.multiply_turned(of_y, scores, sB, stage)
        cute.arch.cp_async_wait_group(0)

        out = part(mDX, own_head, begin, count)
        to_places = by_rows(warps.places(TILE, depth))
        X, Y = by_rows(of_x), by_rows(of_y)
        for r in cute.range_constexpr(2):
            row = number * TILE + to_places[r, 0][0]
            if row < count:
                for n in cute.range_constexpr(depth // 8):
                    pair = cute.local_tile(X[r, None], (2,), (n,)).load() * scale
                    at_pair = to_places[r, 2 * n][1] // 2
                    cute.local_tile(out[row, None], (2,), (at_pair,)).store(pair.to(half))
                    if mDV is not None:
                        values = part(mDV, own_head, begin, count)
                        pair = cute.local_tile(Y[r, None], (2,), (n,)).load()
                        cute.local_tile(values[row, None], (2,), (at_pair,)).store(pair.to(half))
