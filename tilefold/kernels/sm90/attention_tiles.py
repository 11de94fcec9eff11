# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The tiles of attention on Hopper, some rows of one head, whose numbers blocks draw; the sizes of its kernel; and how
its warps load and take turns.
"""

from dataclasses import dataclass
from typing import Any

from tilefold import cute
from tilefold.cute.nvgpu import cpasync
from tilefold.cute.typing import Int

from ..softmax_parts import quad_transposed

WARPGROUP = 128
"""The threads of a warpgroup."""
ROWS = 64
"""The rows that a warpgroup multiplies."""
WIDE = 128
"""The least D for which threads exchange parts of O, so that they write 16 bytes at a time; for a smaller D that takes
longer than it saves.
"""
TWO = 1.09
"""By what factor rows of D = 64 take longer by two warpgroups than by three, without a mask."""


@dataclass(frozen=True)
class Config:
    """The keys of a tile; the warpgroups that multiply, which have 64 rows each; the stages of keys and values, and of
    rows; whether keys after a row's own are left out.

    Where causal, blocks go through `group` heads at a time, the rows with most keys first. The defaults are for D = 64.
    """

    keys: int = 128
    consumers: int = 3
    stages: int = 2
    row_stages: int = 2
    causal: bool = False
    group: int = 32

    @property
    def rows(self) -> int:
        """The rows of a block."""
        return ROWS * self.consumers

    @property
    def threads(self) -> int:
        """The threads of a block."""
        return WARPGROUP * (1 + self.consumers)

    @property
    def registers(self) -> tuple[int, int]:
        """The registers of a thread that loads and of one that multiplies."""
        return (24, 240) if self.consumers == 2 else (32, 160)


def chosen_config(depth: int, causal: bool = False, rows: int = 0) -> Config:
    """The fastest configuration on an H200 for heads of this many rows each; by default these are many."""
    if depth == 64:
        two, three = Config(consumers=2, stages=3, causal=causal, group=16), Config()
        filled = [-(-rows // each.rows) * each.rows for each in (two, three)]
        return two if causal or filled[0] * TWO < filled[1] else three
    if depth == 96:
        return Config(128 if causal else 160, 2, causal=causal, group=16)
    if depth == 128:
        return Config(128, 2, causal=True, group=16) if causal else Config(176, 2, row_stages=1)
    return Config(80, 2, row_stages=1, causal=causal, group=16)


@dataclass
class Tile:
    """Rows of a head: their number in tiles, or -1 where there are none; the head and the batch; the rows and keys of
    the sequence, and where they begin; the factor of scores for powers of 2, and the scale of V.
    """

    m: Int
    head: Int = 0
    batch: Int = 0
    start: Int = 0
    rows: Int = 0
    keys: Int = 0
    start_k: Int = 0
    factor: Int = 1.0
    worth: Int = 1.0

    def tiles_of_keys(self, config: Config) -> Int:
        """How many tiles of keys the rows see; at least one."""
        seen = self.keys
        if config.causal:
            seen = cute.math.min(seen, (self.m + 1) * config.rows + self.keys - self.rows)
        return cute.math.max(cute.ceil_div(seen, config.keys), 1)

    def first_row(self, consumer: object, config: Config) -> Int:
        """The first row of a warpgroup."""
        return (config.consumers * self.m + consumer) * ROWS


class Tiles:
    """The tiles of a launch: of all heads of a batch, or of one packed sequence after the other, which begin at
    `starts`, and their keys at `starts_k`.
    """

    def __init__(
        self,
        config: Config,
        shape: tuple[Any, Any, Any, Any],
        keys: Int,
        starts: cute.Tensor | None,
        starts_k: cute.Tensor | None,
    ) -> None:
        batch, self.rows, self.heads, _ = shape
        self.config, self.keys, self.starts, self.starts_k = config, keys, starts, starts_k
        self.sequences = 1 if starts is None else cute.size(starts) - 1
        self.all_heads = self.heads * batch
        self.sequence, self.before = cute.Int32(0), cute.Int32(0)
        """The sequence of the last tile that was asked for, and the tiles before it."""

    def length(self, sequence: Int) -> tuple[Int, Int, Int, Int]:
        """Where a sequence begins, its rows, where its keys begin, and their number."""
        if self.starts is None or self.starts_k is None:
            return 0, self.rows, 0, self.keys
        (a, b), (c, d) = ((x[sequence], x[sequence + 1]) for x in (self.starts, self.starts_k))
        return a, b - a, c, d - c

    def count(self) -> Any:
        """The tiles of a head of the sequence; 0 after the last one."""
        last = cute.math.min(self.sequence, self.sequences - 1)
        return cute.ceil_div(self.length(last)[1], self.config.rows)

    @cute.jit
    def at(self, number: Int) -> Tile:
        """The tile of a number, which is not below those that were asked for before."""
        tiles = self.count()
        while (self.sequence < self.sequences) & (number >= self.before + tiles * self.all_heads):
            self.before += tiles * self.all_heads
            self.sequence += 1
            tiles = self.count()
        tile = Tile(-1)
        if self.sequence < self.sequences:
            left, group = number - self.before, self.config.group
            m, head = left % tiles, left // tiles
            if self.config.causal:
                first = left // (tiles * group) * group
                heads = cute.math.min(self.all_heads - first, group)
                left -= first * tiles
                m, head = tiles - 1 - left // heads, first + left % heads
            start, rows, start_k, keys = self.length(self.sequence)
            tile = Tile(m, head % self.heads, head // self.heads, start, rows, keys, start_k)
        return tile


def load_of(tensor: object, order: list[int], layout: object, shape: object) -> Any:
    """The TMA copy of a tile, and the coordinates of the tensor."""
    one_stage = cute.slice_(layout, (None, None, 0))
    return cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileG2SOp(), cute.select(tensor, order), one_stage, shape)


def parts(atom: Any, shared: cute.Tensor, coordinates: object, shape: object, start: object) -> Any:
    """Tiles in shared memory and those of a tensor from `start` on, as an instruction moves them."""
    tiled = cute.local_tile(cute.domain_offset(start, coordinates), shape, (None, None, None, None))
    one = cute.make_layout(1)
    return cpasync.tma_partition(atom, 0, one, cute.group_modes(shared, 0, 2), cute.group_modes(tiled, 0, 2))


@cute.jit
def load_stage(pipe: Any, state: Any, atom: Any, source: Any, target: Any) -> None:
    """Loads a tile to the next stage of a pipeline."""
    pipe.producer_acquire(state)
    with cute.arch.elect_one():
        cute.copy(atom, source, target[None, state.index], tma_bar_ptr=pipe.producer_get_barrier(state))
    pipe.producer_commit(state)
    state.advance()


@cute.jit
def turn(group: Int, config: cute.Constexpr[Config], ends: cute.Constexpr[bool] = False) -> None:
    """Two warpgroups take turns: waits for that of `group`, or, where that one `ends`, lets the other one begin."""
    if config.consumers == 2:
        meet = cute.arch.barrier_arrive if ends else cute.arch.barrier
        if group == 0:
            meet(barrier_id=2 if ends else 1, number_of_threads=2 * WARPGROUP)
        else:
            meet(barrier_id=1 if ends else 2, number_of_threads=2 * WARPGROUP)


def quarters(words: cute.Tensor, row: int, depth: int, lane: Int) -> list[list[Any]]:
    """A row of O, whose words of two elements four threads have in turns: 16 bytes of each 64 for each thread."""
    return [quad_transposed([words[row + 8 * b + 2 * i] for i in range(4)], lane) for b in range(depth // 32)]
