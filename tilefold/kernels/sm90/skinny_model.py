# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The configurations of the kernel for few rows (gemm_skinny.py), and a model of their times that chooses one.

The time is mostly that of the longest of four kinds of work: bytes from memory, bytes to a multiprocessor and to all of
them, and the strips of K that a block goes through one after the other. The constants are fitted to measured points of
an H200 (`python -m benchmarks.gemm_fit`); they choose well, and are no exact times.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from math import inf

from ..arguments import refuse
from .parts import ROWS

VECTOR = 4
"""Adjacent sums of a row of D that a thread adds up at a time."""
BUSY = 60
"""Blocks that draw as many bytes as the memory gives, on a GPU with 132 multiprocessors."""
LEAST = 4
"""The fewest strips of K of a block."""
FULL = 0.96
"""The part of their waves that tiles fill where no stream reads the memory more evenly."""
DOUBLED = {1: 0, 2: 1, 4: 2, 8: 3}
"""How often a cluster of one block is doubled, by its blocks."""
MEMORY = 208 * 1024
"""The shared memory of a multiprocessor that stages and sums may take, in bytes."""
FEW = 64
"""The most rows of A that are few: a tile has them all."""
TILES = 48, 64, 80
"""The rows of A in a tile, where A has more."""
MANY = 17
"""So many rows of A in a tile want more stages than half of the memory has room for."""


@dataclass(frozen=True)
class Skinny:
    """Sizes of the kernel: the rows of A and of B in a tile, the stages in shared memory, the blocks of a cluster,
    which share K, the adjacent elements of D that a thread writes, of which N is a multiple, the blocks of a stream, or
    0, whether the products of each 128 bytes of K are added in f32, and the blocks that load tiles of A together.
    """

    m: int = 16
    rows: int = ROWS
    stages: int = 8
    splits: int = 2
    vector: int = VECTOR
    stream: int = 0
    accurate: bool = False
    pair: int = 1

    def __post_init__(self) -> None:
        if self.m % 8 or not 8 <= self.m <= 256 or self.rows % ROWS or self.splits not in (1, 2, 4, 8):
            refuse("gemm", "a tile has a multiple of 8 rows of A and of 64 rows of B, a cluster 1, 2, 4 or 8 blocks")
        if (self.stream or self.pair > 1) and self.splits > 1:
            refuse("gemm", "blocks of a stream and those of a pair are in no clusters that share K")
        if self.pair > 1 and (self.pair != 2 or self.m % 16 or self.stream % 2):
            refuse("gemm", "a pair has two blocks, each of which loads a multiple of 8 rows of A")

    @cached_property
    def residents(self) -> int:
        """The blocks that a multiprocessor holds."""
        memory = self.stages * 128 * (self.rows + self.m) + self.m * (self.rows + VECTOR) * 4
        return 2 if memory <= MEMORY // 2 else 1

    @property
    def lets_begin(self) -> bool:
        """Whether the next launch may begin at once. It gives each multiprocessor one of its blocks then; later, it
        would give two to those that have ended, which matters where memory is the limit.
        """
        return self.stream > 0 or (self.splits == 1 and self.m <= 32 and self.residents == 2)

    def launch(self, m: int, n: int) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
        """The grid for this many rows of A and of B, and the cluster."""
        grid = -(-n // (self.rows * self.pair)) * self.pair, -(-m // self.m), self.splits
        return (self.stream, 1, 1) if self.stream else grid, (self.pair, 1, self.splits)


@dataclass(frozen=True)
class Constants:
    """Microseconds: at the beginning, less of them where a next launch finds room; for 10^6 bytes of memory, with a
    factor for streams and for whole waves, and of other waves; for 1000 bytes to a multiprocessor, and for 10^6 to all;
    of a strip, of one without others in flight, and of sums in f32; of a doubled cluster, of a stream, and of each
    block that shares a tile in one; and to write 128 sums. `overlap` is the exponent by which work at the same time
    adds up: the greater, the less the shorter one costs.
    """

    begin: float = 1.467
    room: float = 0.135
    memory: float = 0.2565
    evenly: float = 0.872
    uneven: float = 1.72
    load: float = 0.0072
    loads: float = 0.1357
    strip: float = 0.0259
    alone: float = 0.651
    accurate: float = 0.08
    doubled: float = 0.708
    stream: float = 0.462
    shares: float = 0.704
    write: float = 0.018
    overlap: float = 9.34


CONSTANTS = Constants()
_skinny = lru_cache(maxsize=4096)(Skinny)


def skinny_candidates(m: int, n: int, k: int, blocks: int, itemsize: int = 2, streams: bool = True) -> Iterator[Skinny]:
    """The configurations for a GPU with this many multiprocessors: clusters of blocks of which two fit a
    multiprocessor, or one where there are many rows of A in a tile, and a stream, whose blocks share these in pairs.
    """
    strips = -(-k * itemsize // 128)
    for few in TILES if m > FEW else (next(rows for rows in (8, 16, 32, 64) if m <= rows),):
        tiles = -(-m // few) * -(-n // ROWS)
        for each in (2, 1) if MANY <= m <= few else (2,):
            stages = min((MEMORY // each - few * (ROWS + VECTOR) * 4) // (128 * (ROWS + few)), 20)
            for splits in (1, 2, 4, 8) if m <= FEW else (1, 2, 4):
                if splits == 1 or (splits * LEAST <= strips and splits * tiles <= 2 * blocks):
                    yield _skinny(few, ROWS, stages, splits)
            if streams and tiles * strips >= blocks * LEAST and m <= few and (each == 1) == (few == 64):
                yield _skinny(few, ROWS, stages, 1, VECTOR, blocks, pair=2 if few == 64 and blocks % 2 == 0 else 1)


def microseconds(
    config: Skinny, m: int, n: int, k: int, blocks: int, itemsize: int = 2, constants: Constants = CONSTANTS
) -> float:
    """The time of a product with these extents by this many multiprocessors."""
    c, rows, few, splits = constants, config.rows, config.m, config.splits
    strips, tiles = -(-k * itemsize // 128), -(-n // rows) * -(-m // few)
    memory, ends = (m * k + n * k + m * n) * itemsize * 1e-6 * c.memory, c.begin
    if config.stream:
        chain = most = tiles * strips / config.stream
        memory *= c.evenly
        ends += c.stream + c.shares * config.stream / tiles
    else:
        residents, part, count = config.residents, -(-strips // splits), tiles * splits
        waves = -(-count // blocks)
        chain, most = -(-count // (blocks * residents // splits * splits)) * part, waves * part
        ends += c.doubled * DOUBLED[splits]
        if residents == 2 and waves == 1:
            ends -= c.room
        if splits == 1 and count >= FULL * waves * blocks:
            memory *= c.evenly
        elif waves > 1:
            ends += c.uneven
    bytes_of_strip = 0.128 * (rows + few / config.pair)
    strip = c.strip + c.alone / config.stages + (c.accurate if config.accurate else 0.0)
    power, loads = c.overlap, tiles * strips * bytes_of_strip * 1e-3 * c.loads
    work = (chain * strip) ** power + (most * bytes_of_strip * c.load) ** power + memory**power + loads**power
    return work ** (1 / power) + ends + c.write * few * rows / 128


def chosen_skinny(
    m: int, n: int, k: int, blocks: int, itemsize: int = 2, streams: bool = False, accurate: bool = False
) -> Skinny:
    """The configuration that the model finds fastest. Streams need memory for sums, which a caller must have."""
    return rated_skinny(m, n, k, blocks, itemsize, streams, accurate)[1]


def rated_skinny(
    m: int, n: int, k: int, blocks: int, itemsize: int = 2, streams: bool = False, accurate: bool = False
) -> tuple[float, Skinny]:
    """The least time that the model finds, and the configuration."""
    found = skinny_candidates(m, n, k, blocks, itemsize, streams)
    if accurate:
        found = (replace(config, accurate=True) for config in found)
    least, chosen = inf, None
    for config in found:
        if (time := microseconds(config, m, n, k, blocks, itemsize)) < least:
            least, chosen = time, config
    assert chosen is not None
    return least, chosen


def is_skinny(m: int, n: int, blocks: int) -> bool:
    """Whether a product is one for this kernel: A has few rows, or D too few tiles for all multiprocessors."""
    return m <= FEW or -(-m // 128) * -(-n // ROWS) < BUSY * blocks // 132


def is_small(m: int, n: int, blocks: int) -> bool:
    """Whether D has so few tiles that this kernel may be faster than the usual one."""
    return -(-m // ROWS) * -(-n // ROWS) <= blocks
