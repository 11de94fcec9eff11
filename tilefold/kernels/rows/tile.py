# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rows of a matrix in registers, 16 bytes at a time, and reductions over them.

`group` threads have a row, a part of a warp or whole warps; a block has `rows` rows. A row that is too long for the
registers of a block is in `chunks`, which the threads load one after the other, and again where a kernel needs them
twice: a row of 64 Ki elements and more then comes from the L2 cache the second time.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from tilefold import cute
from tilefold.builder.scalars.operators import Operand
from tilefold.cute.typing import Int, NumericMeta

WARP = 32
LONGEST = 512
"""The most threads of a row."""
HELD = 64
"""The most elements of a row that a thread holds, but for rows that take `LONGEST` threads."""
MOST_HELD = 64
"""The most elements that a thread holds of one matrix: with 512 threads, more do not fit in their registers."""
THREADS = 128
"""The fewest threads of a block."""


@dataclass(frozen=True)
class Rows:
    """The threads of a row, the rows of a block, adjacent elements that a thread moves at a time, and how many times it
    does so in a chunk; the chunks of a row.
    """

    group: int
    rows: int
    vector: int
    vectors: int
    chunks: int = 1

    @property
    def threads(self) -> int:
        """The threads of a block."""
        return self.group * self.rows

    @property
    def width(self) -> int:
        """The elements of a chunk."""
        return self.group * self.vector * self.vectors


@lru_cache(maxsize=4096)
def chosen_rows(columns: int, vector: int, held: int = HELD, most: int = MOST_HELD, longest: int = LONGEST) -> Rows:
    """The configuration for rows of this many columns that move by `vector` elements, of which a thread holds about
    `held`, and at most `most` of a chunk; at most `longest` threads have a row.
    """
    units = -(-columns // vector)
    group = 1
    while group < longest and group * max(held // vector, 1) < units:
        group *= 2
    while group < WARP and group * 4 <= units and group * vector < 256:
        group *= 2
    vectors = -(-units // group)
    chunks = -(-vectors * vector // most)
    return Rows(group, max(THREADS // group, 1), vector, -(-vectors // chunks), chunks)


def vector_of(columns: int, bits: int, *steps: int) -> int:
    """The elements of this many bits that are moved at a time: 16 bytes, or fewer where rows do not begin there.
    `steps` are the elements from one row to the next.
    """
    vector = max(128 // bits, 1)
    while any(step % vector for step in (columns, *steps)):
        vector //= 2
    return vector


class RowTile:
    """The rows of a block, from number `first` on, of matrices of `count` rows and `columns` columns."""

    def __init__(self, config: Rows, count: Int, columns: int) -> None:
        self.config, self.columns, self.count = config, columns, count
        self.thread = cute.arch.thread_idx()[0]
        self.shape = (config.rows, config.width)
        self.is_ragged = config.rows > 1 or columns % config.width != 0

    def _copy(self, dtype: NumericMeta) -> Any:
        """The tiled copy of a chunk of rows of elements of a type."""
        config = self.config
        bits = min(128, dtype.bits * config.vector)
        atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), dtype, num_bits_per_copy=bits)
        threads = cute.make_layout((config.rows, config.group), stride=(config.group, 1))
        return cute.make_tiled_copy_tv(atom, threads, cute.make_layout((1, config.vector)))

    def _within(self, thread: Int, place: Int, count: Int) -> Operand:
        """Where the elements of a chunk are inside of the matrix; None where all of them are."""
        if not self.is_ragged:
            return None
        whole = cute.make_identity_tensor((count, self.columns))
        rows = count if self.config.rows > 1 else None
        columns = self.columns if self.columns % self.config.width else None
        return cute.bounds(thread.partition_S(cute.local_tile(whole, self.shape, place)), (rows, columns))

    def load(self, matrix: Any, block: Any, chunk: Any = 0, beyond: float = 0.0) -> Any:
        """A thread's elements of a chunk in f32; `beyond` is the value after the end of a row and of the matrix."""
        tiled = self._copy(matrix.element_type)
        thread = tiled.get_slice(self.thread)
        part = thread.partition_S(cute.local_tile(matrix, self.shape, (block, chunk)))
        values = cute.make_rmem_tensor_like(part)
        within = self._within(thread, (block, chunk), matrix.shape[0])
        if within is not None:
            values.fill(beyond)
        cute.copy(tiled, part, values, pred=within)
        return values.load().to(cute.Float32).reshape((self.config.vector, self.config.vectors))

    def load_row(self, vector: cute.Tensor, chunk: object = 0) -> Operand:
        """The elements of one row, such as weights, that belong to those of a thread; 0 beyond its end."""
        every_row = cute.make_layout((self.config.rows, self.columns), stride=(0, 1))
        whole = cute.make_tensor(vector.iterator, every_row)
        tiled = self._copy(vector.element_type)
        thread = tiled.get_slice(self.thread)
        part = thread.partition_S(cute.local_tile(whole, self.shape, (0, chunk)))
        values = cute.make_rmem_tensor_like(part)
        within = None
        if self.columns % self.config.width:
            places = thread.partition_S(cute.local_tile(cute.make_identity_tensor(whole.shape), self.shape, (0, chunk)))
            within = cute.bounds(places, (None, self.columns))
            values.fill(0.0)
        cute.copy(tiled, part, values, pred=within)
        return values.load().to(cute.Float32).reshape((self.config.vector, self.config.vectors))

    def store(self, values: Operand, matrix: cute.Tensor, block: Int, chunk: Int = 0) -> None:
        """Writes elements of f32, rounded to the matrix's type."""
        tiled = self._copy(matrix.element_type)
        thread = tiled.get_slice(self.thread)
        part = thread.partition_D(cute.local_tile(matrix, self.shape, (block, chunk)))
        rounded = cute.make_rmem_tensor_like(part)
        rounded.store(values.to(matrix.element_type).reshape(rounded.shape))
        cute.copy(tiled, rounded, part, pred=self._within(thread, (block, chunk), matrix.shape[0]))

    def inside(self, values: object) -> Any:
        """The values, but 0 beyond the end of a row."""
        if self.columns % self.config.width == 0:
            return values
        config, lane = self.config, self.thread % self.config.group
        kept = cute.make_rmem_tensor((config.vector, config.vectors), cute.Float32)
        kept.store(values)
        for v in range(config.vectors):
            if (v + 1) * config.group * config.vector > self.columns:
                there = (v * config.group + lane) * config.vector < self.columns
                for i in range(config.vector):
                    kept[i, v] = cute.where(there, kept[i, v], 0.0)
        return kept.load()

    @property
    def row(self) -> Int:
        """The number of the thread's row in the block."""
        return self.thread // self.config.group

    @property
    def is_first(self) -> Operand:
        """Whether the thread is the first one of its row."""
        return self.thread % self.config.group == 0


class Sums:
    """Reductions over the threads of a row; `number` of them use a place in shared memory each."""

    def __init__(self, config: Rows, number: int) -> None:
        self.config, self.next = config, 0
        self.warps = config.group // WARP
        if self.warps > 1:
            self.shared = cute.make_smem_tensor((self.warps, config.rows, number), cute.Float32)

    @cute.jit
    def again(self) -> None:
        """The places in shared memory may be used again, once all threads have read them."""
        self.next = 0
        if self.warps > 1:
            cute.arch.sync_threads()

    @cute.jit
    def all(self, values: list[Any], op: Any) -> list[Any]:
        """Each of some values, combined with those of the other threads of the row."""
        config = self.config
        values = [cute.arch.warp_reduction(x, op, threads_in_group=min(config.group, WARP)) for x in values]
        if self.warps <= 1:
            return values
        first, self.next = self.next, self.next + len(values)
        t = cute.arch.thread_idx()[0]
        row, warp = t // config.group, t % config.group // WARP
        if cute.arch.lane_idx() == 0:
            for i, value in enumerate(values):
                self.shared[warp, row, first + i] = value
        cute.arch.sync_threads()
        return [self.shared[None, row, first + i].load().reduce(op) for i in range(len(values))]
