# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The rows of Q for the gradients of attention on Hopper: the sizes of tiles, the kernel before that of
attention_backward.py, which computes the numbers that it needs of each row, and the kernel after it, which rounds dQ.
"""

from dataclasses import dataclass
from typing import Any

from tilefold import cute
from tilefold.cute.nvgpu import warpgroup
from tilefold.cute.typing import Int

from ..sm80.parts import sequence
from .attention_tiles import ROWS as KEYS
from .attention_tiles import WARPGROUP

NEVER = float("-inf")
CONSUMERS = 2
OWN = CONSUMERS * KEYS
"""The keys of a block."""
THREADS = WARPGROUP * (1 + CONSUMERS)
ADJACENT = 4
"""Sums of dQ that a thread has next to each other."""


@dataclass(frozen=True)
class Backward:
    """The rows of a tile of Q, a multiple of 16, and of 128 where D is 64; the stages of Q and dO; whether keys after a
    row's own do not count; whether dS is a product with exponentials in f32, or else with rounded ones, which takes
    fewer registers.
    """

    rows: int = 64
    stages: int = 2
    causal: bool = False
    keeps_single: bool = True

    def tile_of(self, m: Int, batch: Int, starts: cute.Tensor | None) -> Any:
        """The number of a tile of rows among those of all packed sequences, which have at most one more each than their
        tokens fill.
        """
        return m if starts is None else starts[batch] // self.rows + batch + m

    def tiles(self, tokens: int, sequences: int | None) -> int:
        """The tiles of a head: of this many rows, or of packed sequences."""
        return -(-tokens // self.rows) if sequences is None else tokens // self.rows + sequences


def chosen_backward(depth: int, causal: bool) -> Backward:
    """The fastest configuration on an H100."""
    return Backward(128, 2, causal, False) if depth == 64 else Backward(64, 2, causal)


def product_of_dq(half: Any, config: Backward, depth: int) -> tuple[Any, tuple[int, int]]:
    """How a warpgroup multiplies its half of dQ, and the shape of that: 64 rows, or transposed 64 of the columns."""
    K, MN, SMEM = warpgroup.OperandMajorMode.K, warpgroup.OperandMajorMode.MN, warpgroup.OperandSource.SMEM
    if depth == KEYS:
        shape = KEYS, depth
        return cute.make_tiled_mma(warpgroup.MmaF16BF16Op(half, cute.Float32, (*shape, 16), SMEM, K, MN)), shape
    shape = KEYS, config.rows
    return cute.make_tiled_mma(warpgroup.MmaF16BF16Op(half, cute.Float32, (*shape, 16), SMEM, MN, K)), shape


@cute.kernel
def prepare_kernel(
    mOut: cute.Tensor, mDOut: cute.Tensor, mLse: cute.Tensor, mStats: cute.Tensor, mAcc: cute.Tensor,
    config: cute.Constexpr[Backward], starts: cute.Tensor | None = None,
):  # fmt: skip
    """For each tile of rows the logarithms of the sums of exponentials, then the sums of O * dO, both negated, and
    zeros for dQ. Exponentials of rows after the last one are 0.
    """
    t = cute.arch.thread_idx()[0]
    m, head, batch = cute.arch.block_idx()
    cute.arch.griddepcontrol_launch_dependents()
    at, first, rows = sequence(mOut, batch, starts)
    _, _, heads, depth = mOut.shape
    along = depth // 8
    if m * config.rows < rows:
        tile, head_of_all = config.tile_of(m, batch, starts), at * heads + head
        stats = mStats[head_of_all, tile, None]
        for step in cute.range_constexpr(config.rows * along // WARPGROUP):
            inner = step * (WARPGROUP // along) + t // along
            row = m * config.rows + inner
            total, lse = cute.Float32(0), cute.Float32(-NEVER)
            if row < rows:
                o, do = (
                    cute.local_tile(x[at, first + row, head, None], (8,), (t % along,)).load().to(cute.Float32)
                    for x in (mOut, mDOut)
                )
                total = (o * do).reduce(cute.ReductionOp.ADD)
                lse = mLse[at, head, first + row]
            total = cute.arch.warp_reduction(total, cute.ReductionOp.ADD, threads_in_group=along)
            if t % along == 0:
                stats[inner] = -lse
                stats[config.rows + inner] = -total
        zeros = cute.make_rmem_tensor((ADJACENT,), cute.Float32)
        zeros.fill(0.0)
        for i in cute.range_constexpr(config.rows * depth // (ADJACENT * WARPGROUP)):
            cute.local_tile(mAcc[head_of_all, tile, None], (ADJACENT,), (i * WARPGROUP + t,)).store(zeros.load())


@cute.kernel
def finish_kernel(
    mAcc: cute.Tensor, mDQ: cute.Tensor, scale: cute.Float32, config: cute.Constexpr[Backward],
    starts: cute.Tensor | None = None,
):  # fmt: skip
    """dQ = scale * sums, which lie as the threads that multiplied have them."""
    t = cute.arch.thread_idx()[0]
    m, head, batch = cute.arch.block_idx()
    at, first, rows = sequence(mDQ, batch, starts)
    _, _, heads, depth = mDQ.shape
    half, own = mDQ.element_type, t // WARPGROUP
    mma, shape = product_of_dq(half, config, depth)
    places = mma.get_slice(t % WARPGROUP).partition_C(cute.make_identity_tensor(shape))
    padded = cute.make_layout((depth, config.rows), stride=(1, depth + 8))
    shared = cute.make_smem_tensor(padded, half, alignment=16)
    cute.arch.griddepcontrol_wait()
    if m * config.rows < rows:
        sums = mAcc[at * heads + head, config.tile_of(m, batch, starts), None]
        each = cute.size(places) // ADJACENT
        for i in cute.range_constexpr(each):
            four = cute.local_tile(sums, (ADJACENT,), ((own * each + i) * WARPGROUP + t % WARPGROUP,)).load() * scale
            rounded = four.to(half)
            for e in cute.range_constexpr(ADJACENT):
                place = places[ADJACENT * i + e]
                if depth == KEYS:
                    shared[place[1], own * KEYS + place[0]] = rounded[e]
                else:
                    shared[own * KEYS + place[0], place[1]] = rounded[e]
        cute.arch.sync_threads()
        along = depth // 8
        for step in cute.range_constexpr(config.rows * along // (CONSUMERS * WARPGROUP)):
            inner = step * (CONSUMERS * WARPGROUP // along) + t // along
            if m * config.rows + inner < rows:
                to = mDQ[at, first + m * config.rows + inner, head, None]
                eight = cute.local_tile(shared[None, inner], (8,), (t % along,)).load()
                cute.local_tile(to, (8,), (t % along,)).store(eight)
