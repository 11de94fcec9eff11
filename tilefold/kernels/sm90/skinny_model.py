# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The configurations of the kernel for few rows (gemm_skinny.py), and a model of their times that chooses one.

The time is that of the longest of three kinds of work: bytes from memory, bytes to a multiprocessor, and the strips of
K that a block goes through one after the other. The constants are fitted to measured points of an H200 (`python -m
benchmarks.gemm_fit`); they choose well, and are no exact times.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from math import log2

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
MEMORY = 208 * 1024
"""The shared memory of a multiprocessor that stages and sums may take, in bytes."""


@dataclass(frozen=True)
class Skinny:
    """Sizes of the kernel: the rows of A and of B in a tile, the stages in shared memory, the blocks of a cluster,
    which share K, the adjacent elements of D that a thread writes, of which N is a multiple, the blocks of a stream, or
    0, and whether the products of each 128 bytes of K are added in f32.
    """

    m: int = 16
    rows: int = ROWS
    stages: int = 8
    splits: int = 2
    vector: int = VECTOR
    stream: int = 0
    accurate: bool = False

    def __post_init__(self) -> None:
        if self.m % 8 or not 8 <= self.m <= 256 or self.rows % ROWS or self.splits not in (1, 2, 4, 8):
            refuse("gemm", "a tile has a multiple of 8 rows of A and of 64 rows of B, a cluster 1, 2, 4 or 8 blocks")
        if self.stream and self.splits > 1:
            refuse("gemm", "blocks of a stream are in no clusters")

    @property
    def residents(self) -> int:
        """The blocks that a multiprocessor holds."""
        memory = self.stages * 128 * (self.rows + self.m) + self.m * (self.rows + VECTOR) * 4
        return 2 if memory <= MEMORY // 2 else 1


@dataclass(frozen=True)
class Constants:
    """Microseconds: at the beginning, less of them where a next launch finds room; for 10^6 bytes of memory, times a
    factor for streams and for whole waves, and at the beginning of another one of these; for 1000 bytes to a
    multiprocessor; of a strip, of one without others in flight, and of sums in f32; of a doubled cluster, of a stream,
    and of one with two blocks on a multiprocessor; and to write 128 sums.
    """

    begin: float = 1.578
    room: float = 0.795
    memory: float = 0.3065
    evenly: float = 0.664
    again: float = 2.0
    load: float = 0.0031
    strip: float = 0.0588
    alone: float = 0.837
    accurate: float = 0.08
    doubled: float = 1.224
    stream: float = 4.383
    two: float = 4.579
    write: float = 0.0344


CONSTANTS = Constants()
_skinny = lru_cache(maxsize=4096)(Skinny)


def skinny_candidates(m: int, n: int, k: int, blocks: int, itemsize: int = 2, streams: bool = True) -> Iterator[Skinny]:
    """The configurations for a GPU with so many multiprocessors, each with one block or two: clusters, and streams."""
    few = next((rows for rows in (8, 16, 32, 64) if m <= rows), 128)
    for rows in (ROWS, 2 * ROWS):
        tiles, strips = -(-m // few) * -(-n // rows), -(-k * itemsize // 128)
        for each in (1, 2):
            stages = min((MEMORY // each - few * (rows + VECTOR) * 4) // (128 * (rows + few)), 20)
            if stages > 1:
                for splits in (1, 2, 4, 8):
                    if splits == 1 or splits * LEAST <= strips:
                        yield _skinny(few, rows, stages, splits)
                if streams and tiles * strips >= each * blocks * LEAST:
                    yield _skinny(few, rows, stages, 1, VECTOR, each * blocks)


def microseconds(
    config: Skinny, m: int, n: int, k: int, blocks: int, itemsize: int = 2, constants: Constants = CONSTANTS
) -> float:
    """The time of a product with these extents by so many multiprocessors."""
    c, strips, tiles = constants, -(-k * itemsize // 128), -(-n // config.rows) * -(-m // config.m)
    memory = (m * k + n * k + m * n) * itemsize * 1e-6 * c.memory
    if config.stream:
        chain, most = tiles * strips / config.stream, tiles * strips / blocks
        memory *= c.evenly
        ends = c.stream + (c.two if config.stream > blocks else 0.0)
    else:
        part, count = -(-strips // config.splits), tiles * config.splits
        slots = blocks * config.residents // config.splits * config.splits
        waves, again = -(-count // blocks), 0.0
        chain, most = -(-count // slots) * part, waves * part
        if config.splits == 1 and count >= FULL * waves * blocks:
            memory, again = memory * c.evenly, c.again * (waves - 1)
        ends = again + c.doubled * log2(config.splits) - (c.room if config.residents == 2 and count <= blocks else 0.0)
    loads = most * 0.128 * (config.rows + config.m) * c.load
    strip = c.strip + c.alone / config.stages + (c.accurate if config.accurate else 0.0)
    work = max(loads, chain * strip, memory)
    return work + ends + c.begin + c.write * config.m * config.rows / 128


def chosen_skinny(
    m: int, n: int, k: int, blocks: int, itemsize: int = 2, streams: bool = False, accurate: bool = False
) -> Skinny:
    """The configuration that the model finds fastest. Streams need memory for sums, which a caller must have."""
    found = skinny_candidates(m, n, k, blocks, itemsize, streams)
    if accurate:
        found = (replace(config, accurate=True) for config in found)
    return min(found, key=lambda config: microseconds(config, m, n, k, blocks, itemsize))


def is_skinny(m: int, n: int, blocks: int) -> bool:
    """Whether a product is one for this kernel: A has few rows, or D too few tiles for all multiprocessors."""
    return m <= 64 or -(-m // 128) * -(-n // ROWS) < BUSY * blocks // 132
