# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tiles of which several blocks share K, so that uneven waves leave no block without work (stream K: Osama et al.,
PPoPP 2023).

The strips of K of the first tiles follow each other in one row, of which each gang of blocks has an equal part. These
are as many tiles as two waves leave, or all where there is one wave. The others belong to one gang each. The blocks of
a gang have adjacent tiles. So they read the same strips at the same time, which the L2 cache would not hold for long.

A part may begin and end within a tile. The block that has a tile's first strips writes it. Each other block leaves its
sums of the tile in memory, says so, and goes on. It does this first of all, while the block that waits for it computes
the last of its parts. Sums are added in the order of K, so that each launch gives the same bits.

A block waits for those with lower numbers alone, which begin earlier.
"""

from typing import Any

from tilefold import cute
from tilefold.cute import utils

from .parts import WARPGROUP, Config

VECTOR = 4
"""The adjacent sums of a thread in memory."""
SUMS_READY = 3
"""The barrier of the consumers that share a tile."""


class SharedTiles:
    """The parts of a block, one after the other: a tile and the strips of K from `begin` to `end`.

    The blocks of a gang compute adjacent tiles, which read the same rows and columns, at the same time.
    """

    def __init__(self, problem: tuple[Any, Any, Any], count: Any, gang: tuple[int, int]):
        size, block = gang[0] * gang[1], cute.arch.block_idx()[2]
        self.gangs, self.gang, self.size = cute.arch.grid_dim()[2] // size, gang, size
        self.lane, self.number = block % size, self.gangs - 1 - block // size
        self.high, self.count = cute.ceil_div(problem[0], gang[0]), count
        self.tiles = self.high * cute.ceil_div(problem[1], gang[1])
        uneven = self.tiles % self.gangs
        two = cute.where(uneven == 0, 0, uneven + self.gangs)
        shared = cute.where(self.tiles < self.gangs, self.tiles, two)
        self.strips = shared * count
        self.at, self.last = self.first_of(self.number), self.first_of(self.number + 1)
        self.next = shared + block // size
        self.begin, self.end, self.tile = cute.Int32(0), cute.Int32(0), cute.Int32(0)
        self.find()

    def first_of(self, number: Any) -> Any:
        """The first strip of a gang, in the row of them all."""
        return self.strips // self.gangs * number + cute.math.min(number, self.strips % self.gangs)

    def find(self) -> None:
        """Sets the part at hand."""
        is_shared = self.at < self.last
        self.tile = cute.where(is_shared, self.at // self.count, self.next)
        self.begin = cute.where(is_shared, self.at - self.tile * self.count, 0)
        self.end = cute.where(is_shared, cute.math.min(self.count, self.begin + self.last - self.at), self.count)

    def work(self) -> utils.WorkTileInfo:
        """The tile of the part at hand."""
        high, _ = self.gang
        m, n = self.tile % self.high * high, self.tile // self.high * self.gang[1]
        return utils.WorkTileInfo((m + self.lane % high, n + self.lane // high, 0), self.tile < self.tiles)

    def advance(self) -> None:
        """Goes on to the next part."""
        is_shared = self.at < self.last
        self.next = cute.where(is_shared, self.next, self.next + self.gangs)
        self.at = cute.where(is_shared, self.at + self.end - self.begin, self.at)
        self.find()


class Exchange:
    """Sums of parts of tiles in memory, with a place for each block, and whether they are `ready` (1)."""

    def __init__(self, parts: Any, ready: Any, config: Config):
        self.ready, self.threads = ready, WARPGROUP * config.consumers
        self.size = config.m * config.n
        vectors = self.size // (VECTOR * self.threads)
        each = cute.make_layout((VECTOR, self.threads, vectors), stride=(1, VECTOR, VECTOR * self.threads))
        self.parts, self.each, self.vectors = parts, each, vectors

    def place(self, number: Any, thread: Any) -> Any:
        """The sums of a thread in the place of a block: (VECTOR,vectors)."""
        whole = cute.make_tensor(cute.domain_offset(number * self.size, self.parts).iterator, self.each)
        return whole[None, thread, None]

    @cute.jit
    def complete(self, acc: Any, tiles: SharedTiles, thread: Any):
        """Adds what other blocks have of the tile at hand, whose first strips the block has."""
        number, covered = tiles.number + 1, tiles.tile * tiles.count + tiles.end
        while covered < (tiles.tile + 1) * tiles.count:
            self.add(acc, number * tiles.size + tiles.lane, thread)
            number += 1
            covered = tiles.first_of(number)

    @cute.jit
    def leave(self, acc: Any, tiles: SharedTiles, thread: Any):
        """Leaves the sums of the block in its place."""
        number = tiles.number * tiles.size + tiles.lane
        sums, to = cute.composition(acc, cute.make_layout((VECTOR, self.vectors))), self.place(number, thread)
        for i in cute.range_constexpr(self.vectors):
            cute.autovec_copy(sums[None, i], to[None, i])
        cute.arch.barrier(barrier_id=SUMS_READY, number_of_threads=self.threads)
        if thread == 0:
            cute.arch.store_release(self.ready.ptr(number), 1)

    @cute.jit
    def add(self, acc: Any, number: Any, thread: Any):
        """Adds the sums of a block, when they are ready; then its place is free again."""
        if thread == 0:
            while cute.arch.load_acquire(self.ready.ptr(number)) == 0:
                pass
        cute.arch.barrier(barrier_id=SUMS_READY, number_of_threads=self.threads)
        sums, given = cute.composition(acc, cute.make_layout((VECTOR, self.vectors))), self.place(number, thread)
        for i in cute.range_constexpr(self.vectors):
            sums[None, i].store(sums[None, i].load() + given[None, i].load())
        cute.arch.barrier(barrier_id=SUMS_READY, number_of_threads=self.threads)
        if thread == 0:
            self.ready[number] = 0
