# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tiles whose K several blocks share in equal parts, for products with fewer tiles than multiprocessors.

The blocks of all tiles begin together, so that those with the same rows or columns read them at the same time, which
the L2 cache would not hold for long. The block with a tile's first strips writes it. Each other block leaves its sums
in memory and says so. Sums are added in the order of K, so that each launch gives the same bits. A block waits for
those with lower numbers alone, which begin earlier.
"""

from typing import Any

from tilefold import cute

from .parts import WARPGROUP, Config

VECTOR = 4
"""The adjacent sums of a thread in memory."""
SUMS_READY = 3
"""The barrier of the consumers that share a tile."""


class Exchange:
    """Sums of parts of tiles in memory, with a place for each block that does not write, and whether they are `ready`
    (1). `tile` is the number of the block's tile, and `part` that of its part of K.
    """

    def __init__(self, sums: Any, ready: Any, config: Config, tile: Any, part: Any):
        self.sums, self.ready, self.config = sums, ready, config
        self.first, self.part = tile * (config.splits - 1), part
        self.threads, self.size = WARPGROUP * config.consumers, config.m * config.n
        self.vectors = self.size // (VECTOR * self.threads)

    def place(self, part: Any, thread: Any) -> Any:
        """The sums of a thread in the place of a part: (VECTOR,vectors)."""
        each = cute.make_layout((VECTOR, self.threads, self.vectors), stride=(1, VECTOR, VECTOR * self.threads))
        begin = cute.domain_offset((self.first + part - 1) * self.size, self.sums)
        return cute.make_tensor(begin.iterator, each)[None, thread, None]

    def wait(self) -> None:
        """The consumers wait for each other."""
        cute.arch.barrier(barrier_id=SUMS_READY, number_of_threads=self.threads)

    @cute.jit
    def leave(self, acc: Any, thread: Any):
        """Leaves the sums of the block in its place."""
        sums, to = cute.composition(acc, cute.make_layout((VECTOR, self.vectors))), self.place(self.part, thread)
        for i in cute.range_constexpr(self.vectors):
            cute.autovec_copy(sums[None, i], to[None, i])
        self.wait()
        if thread == 0:
            cute.arch.store_release(self.ready.ptr(self.first + self.part - 1), 1)

    @cute.jit
    def complete(self, acc: Any, thread: Any):
        """Adds the sums of the other parts, when they are ready; then their places are free again."""
        sums = cute.composition(acc, cute.make_layout((VECTOR, self.vectors)))
        for part in cute.range(1, self.config.splits):
            ready = self.ready.ptr(self.first + part - 1)
            if thread == 0:
                while cute.arch.load_acquire(ready) == 0:
                    pass
            self.wait()
            given = self.place(part, thread)
            for i in cute.range_constexpr(self.vectors):
                sums[None, i].store(sums[None, i].load() + given[None, i].load())
            self.wait()
            if thread == 0:
                self.ready[self.first + part - 1] = 0
