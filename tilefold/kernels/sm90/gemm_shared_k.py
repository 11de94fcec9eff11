# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tiles whose K several blocks share in equal parts: those that do not fill a last wave of blocks.

The blocks of these tiles begin together, so that those with the same rows or columns read them at the same time, which
the L2 cache would not hold for long. The block with a tile's first strips writes it. Each other block leaves its sums
in memory and says so. Sums are added in the order of K, so that each launch gives the same bits. A block waits for
those with lower numbers alone, which begin earlier.
"""

from typing import Any

from tilefold import cute
from tilefold.builder.scalars.operators import Operand
from tilefold.cute import utils
from tilefold.cute.typing import Int

VECTOR = 4
"""The adjacent sums of a thread in memory."""
SUMS_READY = 4
"""The barrier of the threads that hold the sums of a tile."""


class Exchange:
    """Sums of parts of tiles in memory, `size` of them in each place, which this many `threads` hold, and whether they
    are `ready` (1).
    """

    def __init__(self, sums: Any, ready: Any, size: int, threads: int):
        self.sums, self.ready, self.size, self.threads = sums, ready, size, threads
        self.vectors = size // (VECTOR * threads)

    def place(self, number: Int, thread: Int) -> Operand:
        """The sums of a thread in a place: (VECTOR,vectors)."""
        each = cute.make_layout((VECTOR, self.threads, self.vectors), stride=(1, VECTOR, VECTOR * self.threads))
        begin = cute.domain_offset(number * self.size, self.sums)
        return cute.make_tensor(begin.iterator, each)[None, thread, None]

    def wait(self) -> None:
        """The threads wait for each other."""
        cute.arch.barrier(barrier_id=SUMS_READY, number_of_threads=self.threads)

    @cute.jit
    def leave(self, acc: Any, number: Int, thread: Int):
        """Leaves sums in a place."""
        sums, to = cute.composition(acc, cute.make_layout((VECTOR, self.vectors))), self.place(number, thread)
        for i in cute.range_constexpr(self.vectors):
            cute.autovec_copy(sums[None, i], to[None, i])
        self.wait()
        if thread == 0:
            cute.arch.store_release(self.ready.ptr(number), 1)

    @cute.jit
    def add(self, acc: Any, number: Int, thread: Int):
        """Adds the sums in a place, when they are ready; then the place is free again."""
        sums, ready = cute.composition(acc, cute.make_layout((VECTOR, self.vectors))), self.ready.ptr(number)
        if thread == 0:
            while cute.arch.load_acquire(ready) == 0:
                pass
        self.wait()
        given = self.place(number, thread)
        for i in cute.range_constexpr(self.vectors):
            sums[None, i].store(sums[None, i].load() + given[None, i].load())
        self.wait()
        if thread == 0:
            self.ready[number] = 0


class SharedTiles:
    """A scheduler like utils.StaticPersistentTileScheduler for blocks that share K of the tiles that are left over, by
    `splits` blocks each. `part` is the block's part of its tile, from strip `begin` to `end` of `count`, `place` that
    of part 0, and `is_shared` whether there are other parts.
    """

    def __init__(self, params: utils.PersistentTileSchedulerParams, tiles: Int, count: Int, splits: int):
        self.params, self.count, self.splits = params, cute.Int32(count), splits
        self.blocks, self.unit = cute.arch.grid_dim(), cute.arch.block_idx()[2]
        self.whole = tiles // self.blocks[2] * self.blocks[2]
        self.rest = cute.math.max(tiles - self.whole, 1)
        self.tiles = cute.Int32(tiles)
        self.is_shared = cute.Boolean(False)
        self.part, self.place, self.begin, self.end = cute.Int32(0), cute.Int32(0), cute.Int32(0), self.count

    def initial_work_tile_info(self) -> Int:
        """The first tile of the block."""
        return self.get_current_work()

    def advance_to_next_work(self, _: int = 1) -> None:
        """Goes on to the next tile."""
        self.unit = self.unit + self.blocks[2]

    @cute.jit
    def get_current_work(self):
        """The tile of the block, or the tile of which it has a part."""
        tile, over = self.unit, self.unit - self.whole
        if over >= 0:
            self.is_shared = cute.Boolean(True)
            self.part = self.splits - 1 - over // self.rest
            self.place = over % self.rest * (self.splits - 1) - 1
            self.begin = self.count * self.part // self.splits
            self.end = self.count * (self.part + 1) // self.splits
            tile = self.whole + over % self.rest
            if over >= self.rest * self.splits:
                tile = self.tiles
        scheduler = utils.StaticPersistentTileScheduler.create(self.params, (0, 0, tile), self.blocks)
        return scheduler.get_current_work()


def tile_scheduler(params: utils.PersistentTileSchedulerParams, tiles: Int, count: Int, splits: int) -> Any:
    """The scheduler of a block: it shares K of the tiles that are left over where `splits` is more than 1."""
    if splits > 1:
        return SharedTiles(params, tiles, count, splits)
    return utils.StaticPersistentTileScheduler.create(params, cute.arch.block_idx(), cute.arch.grid_dim())
