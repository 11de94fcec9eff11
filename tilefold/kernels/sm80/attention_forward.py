# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention by mma.sync, for rows and keys of any number: O = softmax(scores) V for each head, and for the gradients
the logarithm of each row's sum of exponentials (Dao, FlashAttention-2, 2023).

A block has 64 rows of one head and goes through the tiles of keys that its mask leaves.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tilefold import cute
from tilefold.cute.typing import Int

from ..softmax_parts import exp2, quad_reduce
from .parts import Loads, Mask, Warps, by_rows, rows_of_head, sequence, shared_layout

WARPS = 4
TILE = 64
"""The rows of a block, and the keys of a tile."""
THREADS = 32 * WARPS
STAGES = 2
NEVER = float("-inf")
LOG2_E = 1.4426950408889634
Bias = Callable[[Any, Any, Any, Any], Any]
"""A number in f32 that is added to a score: a function of batch, head, row and key."""


@dataclass(frozen=True)
class Forward:
    """Which scores count; the greatest magnitude that they approach, if not 0, by `cap * tanh(score / cap)`; and a
    number that is added to each.
    """

    mask: Mask
    cap: float = 0.0
    bias: Bias | None = None


@cute.kernel
def attention_forward_kernel(
    mQ: cute.Tensor,
    mK: cute.Tensor,
    mV: cute.Tensor,
    mOut: cute.Tensor,
    mLse: cute.Tensor | None,
    scale: cute.Float32,
    config: cute.Constexpr[Forward],
    starts: cute.Tensor | None = None,
    starts_k: cute.Tensor | None = None,
):
    number, head, batch = cute.arch.block_idx()
    half, mask = mQ.element_type, config.mask
    depth, shared = mQ.shape[3], mQ.shape[2] // mK.shape[2]
    at, first, rows = sequence(mQ, batch, starts)
    _, first_k, keys = sequence(mK, batch, starts_k)

    def part(tensor: Any, head: Int, begin: Int, count: Int) -> Any:
        return rows_of_head(tensor, at, head, begin, count)

    sQ = cute.make_smem_tensor(shared_layout(TILE, depth), half, alignment=1024)[None, None, 0]
    sK, sV = (cute.make_smem_tensor(shared_layout(TILE, depth, STAGES), half, alignment=1024) for _ in range(2))
    loads, warps = Loads(half, THREADS, TILE, depth), Warps(half, WARPS)
    if number * TILE < rows:
        low, high = mask.others(number * TILE, TILE, rows, keys, TILE, cute.ceil_div(keys, TILE), False)
        gK, gV = (part(x, head // shared, first_k, keys) for x in (mK, mV))
        loads.begin(part(mQ, head, first, rows), number, sQ)
        if low < high:
            loads.begin(gK, low, sK[None, None, 0])
            loads.begin(gV, low, sV[None, None, 0])
        cute.arch.cp_async_commit_group()

        scores, sums = warps.sums(TILE, TILE), warps.sums(TILE, depth)
        places = by_rows(warps.places(TILE, TILE))
        S, out = by_rows(scores), by_rows(sums)
        largest, total = (cute.make_rmem_tensor((2, 1), cute.Float32) for _ in range(2))
        sums.fill(0.0)
        largest.fill(NEVER)
        total.fill(0.0)
        for j in cute.range(low, high):
            cute.arch.cp_async_wait_group(0)
            cute.arch.sync_threads()
            stage = (j - low) % STAGES
            if j + 1 < high:
                loads.begin(gK, j + 1, sK[None, None, (j + 1 - low) % STAGES])
                loads.begin(gV, j + 1, sV[None, None, (j + 1 - low) % STAGES])
            cute.arch.cp_async_commit_group()
            scores.fill(0.0)
            warps.multiply(scores, sQ, sK, stage)
            for r in cute.range_constexpr(2):
                for c in cute.range_constexpr(TILE // 4):
                    row, key = number * TILE + places[r, c][0], j * TILE + places[r, c][1]
                    score = S[r, c] * scale
                    if cute.const_expr(config.cap > 0):
                        score = cute.tanh(score * (1 / config.cap)) * config.cap
                    if config.bias is not None:
                        score = score + config.bias(batch, head, row, key)
                    S[r, c] = cute.where(mask.sees(row, key, rows, keys), score * LOG2_E, NEVER)
            before = largest.load()
            top = quad_reduce(
                S.load().reduce(cute.ReductionOp.MAX, before, reduction_profile=(None, 1), keepdims=True),
                cute.ReductionOp.MAX,
            )
            largest.store(top)
            reached = cute.where(top == NEVER, 0.0, top)  # a row may have had no key yet
            shrink = exp2(before - reached)
            power = exp2(S.load() - reached)
            S.store(power)
            scaled = total.load() * shrink
            total.store(power.reduce(cute.ReductionOp.ADD, scaled, reduction_profile=(None, 1), keepdims=True))
            out.store(out.load() * shrink)
            warps.multiply_turned(sums, scores, sV, stage)
        cute.arch.cp_async_wait_group(0)

        whole = quad_reduce(total.load(), cute.ReductionOp.ADD)
        total.store(whole)
        inverse = cute.where(total.load() == 0.0, 0.0, cute.arch.approx("rcp", total.load()))
        out.store(out.load() * inverse)
        gO = part(mOut, head, first, rows)
        to_places = by_rows(warps.places(TILE, depth))
        for r in cute.range_constexpr(2):
            row = number * TILE + to_places[r, 0][0]
            if row < rows:
                for n in cute.range_constexpr(depth // 8):
                    pair = cute.local_tile(out[r, None], (2,), (n,)).load()
                    to = cute.local_tile(gO[row, None], (2,), (to_places[r, 2 * n][1] // 2,))
                    to.store(pair.to(half))
                if mLse is not None and to_places[r, 0][1] == 0:
                    lse = cute.where(total[r] == 0.0, 0.0, largest[r] + cute.log2(total[r]))
                    mLse[at, head, first + row] = lse
