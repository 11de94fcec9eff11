# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention for few rows of Q on Hopper: the sizes of its kernel, and how warps and blocks that share the keys add up
their rows of O.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tilefold import cute
from tilefold.builder.scalars.operators import Operand
from tilefold.cute.typing import Int

from ..arguments import Array, refuse
from ..softmax_parts import exp2

NEVER = float("-inf")
ROWS = 16
"""The rows of a tile of Q, those of mma.sync."""
VECTOR = 4
"""Adjacent elements of O that a thread adds up at a time."""
PADDING = 8
"""Elements between rows of O in shared memory, so that the rows of a fragment have different banks."""
MEMORY = 220 * 1024
"""The shared memory of a multiprocessor that stages and rows of Q may take, in bytes."""
BUSY = 60
"""Blocks that draw as many bytes as the memory gives, on a GPU with 132 multiprocessors."""
MANY = 4096
"""So many keys of a block are many."""
LONG = 1024
"""The fewest keys of a block that shares them by memory."""
DEPTHS = 64, 128, 256


@dataclass(frozen=True)
class Decode:
    """Sizes of the kernel: the keys of a tile, the warps that multiply, the tiles of Q of a block, the stages in shared
    memory, the blocks of a cluster, which share the keys, and those in no cluster that share them by memory; whether a
    row does not see the keys after its own, and then how many it sees, if not all; the functions that change a score,
    as in `attention`.

    The warps of a tile of Q share the keys of each tile, 16 or a multiple each.
    """

    keys: int = 64
    warps: int = 4
    tiles: int = 1
    stages: int = 3
    splits: int = 1
    parts: int = 1
    causal: bool = False
    window: int = 0
    cap: float = 0.0
    bias: Callable[[Any, Any, Any, Any], Any] | None = None

    def __post_init__(self) -> None:
        if self.warps % self.tiles or self.keys % (ROWS * self.slices) or self.splits not in (1, 2, 4, 8):
            refuse("decode_attention", "a warp has 16 keys of a tile or a multiple, a cluster 1, 2, 4 or 8 blocks")
        if self.splits > 1 and self.parts > 1:
            refuse("decode_attention", "blocks share the keys in a cluster or by memory")

    @property
    def slices(self) -> int:
        """The warps that share the keys of a tile."""
        return self.warps // self.tiles

    @property
    def shares(self) -> int:
        """The blocks that share the keys."""
        return self.splits * self.parts

    @property
    def rows(self) -> int:
        """The rows of Q that a block multiplies at once."""
        return ROWS * self.tiles

    @property
    def threads(self) -> int:
        """The threads of a block."""
        return 32 * (self.warps + 1)


def chosen_decode(
    batch: int, heads_k: int, keys: int, blocks: int, rows: int = 1, depth: int = 128, page: int = 0
) -> Decode:
    """The configuration for this many rows of Q to each head of K, on a GPU with `blocks` multiprocessors; K may be on
    pages of this many keys.

    Few heads with many keys share them by memory, so that each multiprocessor has a block. Otherwise blocks share the
    keys in a cluster until enough of them draw on the memory, as long as each has two tiles; more cost time at the end.
    Three stages of 64 keys suffice, but for blocks of a cluster that read many. Where every multiprocessor has a head,
    tiles of 128 keys are faster, even without a second stage.
    """
    tiles = 1 if rows <= ROWS or depth > 128 else 2 if rows <= 2 * ROWS else 4
    count = batch * heads_k * -(-rows // (ROWS * tiles))
    fills = depth == 128 and tiles == 1 and count * 10 >= blocks * 9
    splits, size = 1, 128 if (depth == 64 or fills) and page % 128 == 0 else 64
    parts, memory = min(blocks // count, keys // LONG), MEMORY
    if parts <= 8 and (parts <= 2 or count * parts < BUSY * blocks // 132):
        parts = 1
        while splits < 8 and count * splits < BUSY * blocks // 132 and 4 * splits * size <= keys:
            splits *= 2
        reads_many = splits > 1 and keys // splits >= MANY
        memory = MEMORY if reads_many or depth > 128 or (fills and count <= blocks) else MEMORY // 2
    stages = (memory - 2 * ROWS * tiles * depth) // (4 * size * depth)
    return Decode(size, 8 if tiles == 4 else 4, tiles, stages, splits, parts)


def is_decode(Q: Array, K: Array) -> bool:
    """Whether attention is one for this kernel: few rows of Q to each head of K."""
    rows, shared = Q.shape[1], Q.shape[2] // K.shape[2]
    return rows <= ROWS and rows * shared <= 4 * ROWS and Q.shape[3] in DEPTHS


def layout_of_parts(config: Decode, depth: int) -> cute.Layout:
    """Rows of O of each warp in shared memory: (D,row,warp)."""
    row = depth + PADDING
    return cute.make_layout((depth, ROWS, config.warps), stride=(1, row, ROWS * row))


class Parts:
    """The results of each warp of a block, in shared memory: for its rows the greatest score, the sum of
    exponentials and the unfinished row of O. Warp `i * tiles + tile` has rows of tile `tile` of Q.
    """

    def __init__(self, config: Decode, rows: cute.Tensor) -> None:
        self.config, self.rows = config, rows
        self.tops, self.sums = (
            cute.make_smem_tensor(cute.make_layout((ROWS, config.warps)), cute.Float32) for _ in range(2)
        )

    def warps_of(self, tile: Int) -> list[Any]:
        """The warps of a tile of Q."""
        return [i * self.config.tiles + tile for i in range(self.config.slices)]

    def of_warps(self, row: Int, tile: Int, at: Int) -> Any:
        """Adjacent elements of a row of O, of all warps."""
        first, *others = (self.rows[None, row, warp] for warp in self.warps_of(tile))
        result = cute.local_tile(first, (VECTOR,), (at,)).load()
        for other in others:
            result = result + cute.local_tile(other, (VECTOR,), (at,)).load()
        return result

    def sum_of_warps(self, row: Int, tile: Int) -> Operand:
        """The sum of exponentials of a row, of all warps."""
        first, *others = (self.sums[row, warp] for warp in self.warps_of(tile))
        for other in others:
            first = first + other
        return first

    @cute.jit
    def add_up(self, row: Int, tile: Int, at: Int) -> None:
        """The sum over all warps replaces the first one's: adjacent elements of O, and where they are the
        first, also the greatest score and the sum.
        """
        cute.local_tile(self.rows[None, row, tile], (VECTOR,), (at,)).store(self.of_warps(row, tile, at))
        if at == 0:
            self.sums[row, tile] = self.sum_of_warps(row, tile)
            top = self.tops[row, tile]
            for other in self.warps_of(tile)[1:]:
                top = cute.math.max(top, self.tops[row, other])
            self.tops[row, tile] = top

    def of_blocks(self, row: Int, tile: Int, at: Int, factor: Operand) -> Any:
        """Adjacent elements of a finished row of O, 0 where it sees no key. If several blocks share the keys, each has
        added up its own; scores count `factor` times.
        """
        if self.config.splits == 1:
            return _quotient(self.of_warps(row, tile, at), self.sum_of_warps(row, tile))
        blocks = range(self.config.splits)
        tops, sums, rows = ([cute.arch.mapa(x, block) for block in blocks] for x in (self.tops, self.sums, self.rows))
        highest = [top[row, tile] for top in tops]
        reached = highest[0]
        for top in highest[1:]:
            reached = cute.math.max(reached, top)
        reached = cute.where(reached == NEVER, 0.0, reached)
        result: Any = 0.0
        total: Int = 0.0
        for block in blocks:
            shrink = exp2((highest[block] - reached) * factor)
            result = result + cute.local_tile(rows[block][None, row, tile], (VECTOR,), (at,)).load() * shrink
            total = total + sums[block][row, tile] * shrink
        return _quotient(result, total)


class Memory:
    """The results that each of the blocks which share the keys of some rows leaves in memory: the rows of O, the
    greatest scores and the sums. The block that is the last to say so adds them up in the order of the keys.
    """

    def __init__(self, config: Decode, depth: int, left: Any, ready: Any, group: Int) -> None:
        self.config, self.depth, self.left, self.ready, self.group = config, depth, left, ready, group
        self.is_last = cute.make_smem_tensor(cute.make_layout(1), cute.Int32)

    def place(self, part: Int) -> tuple[Int, Int, Int]:
        """The rows of O, the greatest scores and the sums of a block: (D,row), (row), (row)."""
        rows, depth = self.config.rows, self.depth
        begin = (self.group * self.config.parts + part) * (rows * (depth + 2))
        layouts = cute.make_layout((depth, rows)), cute.make_layout(rows), cute.make_layout(rows)
        offsets = 0, depth * rows, (depth + 1) * rows
        found, tops, sums = (
            cute.make_tensor(cute.domain_offset(begin + offset, self.left).iterator, layout)
            for layout, offset in zip(layouts, offsets, strict=True)
        )
        return found, tops, sums

    @cute.jit
    def leave(self, parts: Parts, part: Int, number: Int, at: Int):
        """Leaves adjacent elements of a row, and where they are the first, also its greatest score and its sum."""
        rows, tops, sums = self.place(part)
        row, tile = number % ROWS, number // ROWS
        cute.local_tile(rows[None, number], (VECTOR,), (at,)).store(parts.of_warps(row, tile, at))
        if at == 0:
            sums[number] = parts.sum_of_warps(row, tile)
            top = parts.tops[row, tile]
            for other in parts.warps_of(tile)[1:]:
                top = cute.math.max(top, parts.tops[row, other])
            tops[number] = top

    @cute.jit
    def arrive(self, thread: Int, threads: int) -> Any:
        """All threads of the block have left theirs; gives whether this block was the last."""
        cute.arch.barrier(barrier_id=1, number_of_threads=threads)
        if thread == 0:
            before = cute.arch.atomic_add(self.ready.ptr(self.group), 1, sem="acq_rel", scope="gpu")
            self.is_last[0] = before
        cute.arch.barrier(barrier_id=1, number_of_threads=threads)
        return self.is_last[0] == self.config.parts - 1

    @cute.jit
    def of_blocks(self, number: Int, at: Int, factor: Any) -> Any:
        """Adjacent elements of a finished row of O, 0 where it sees no key; scores count `factor` times."""
        reached = cute.Float32(NEVER)
        for part in cute.range(self.config.parts, unroll=8):
            reached = cute.math.max(reached, self.place(part)[1][number])
        reached = cute.where(reached == NEVER, 0.0, reached)
        result, total = cute.make_rmem_tensor((VECTOR,), cute.Float32), cute.Float32(0.0)
        result.fill(0.0)
        for part in cute.range(self.config.parts, unroll=8):
            rows, tops, sums = self.place(part)
            shrink = exp2((tops[number] - reached) * factor)
            result.store(result.load() + cute.local_tile(rows[None, number], (VECTOR,), (at,)).load() * shrink)
            total = total + sums[number] * shrink
        return _quotient(result.load(), total)

    def end(self) -> None:
        """The memory is free again."""
        self.ready[self.group] = 0


def _quotient(x: Operand, total: Operand) -> Any:
    return x * cute.where(total == 0.0, 0.0, cute.arch.approx("rcp", total))
