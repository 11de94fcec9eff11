# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A model of the time that a GEMM on Hopper takes with each configuration, from which the fastest is chosen.

Blocks go through their tiles in waves. A tile takes, for each strip of 128 bytes of K, the time of the tensor cores or
that of the bytes from the L2 cache, mostly the longer one; and the time of writing its sums, which consumers that take
turns hide but for the last tile. No product is faster than the memory. Where blocks share K of the tiles of the last
wave, each has a part of the strips, and their sums go through memory. The constants are fitted to measured points of an
H200 (`python -m benchmarks.gemm_fit`).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from heapq import nsmallest
from types import MappingProxyType

from .parts import ROWS, Config

SUMS: Mapping[tuple[int, int, bool], float] = MappingProxyType({
    (64, 64, True): 0.285, (64, 128, True): 0.292, (64, 192, True): 0.32, (64, 256, True): 0.311,
    (128, 64, True): 0.291, (128, 64, False): 0.326, (128, 96, True): 0.334, (128, 128, True): 0.303,
    (128, 128, False): 0.303, (128, 160, True): 0.312, (128, 192, True): 0.292, (128, 192, False): 0.29,
    (128, 224, False): 0.285, (128, 256, False): 0.287, (192, 96, False): 0.307, (192, 128, False): 0.302,
    (192, 160, False): 0.282, (192, 192, False): 0.279, (256, 64, False): 0.37,
    (256, 128, False): 0.296, (256, 160, False): 0.28, (256, 192, False): 0.282,
})  # fmt: skip
"""Microseconds of the tensor cores for 10^6 products of 16 bits, by the tile and whether consumers take turns."""


@dataclass(frozen=True, eq=False)
class Constants:
    """Microseconds of the tensor cores (see SUMS); for 1000 bytes from the L2 cache, with factors of blocks that share
    tiles and of rows that do not begin at lines of the cache; for 1000 sums that are written; for 10^6 bytes of memory;
    until the first products and after the last ones; in which a block hands over its sums, and for 1000 of them.
    `overlap` is the exponent by which work at the same time adds up: the greater, the less the shorter one costs.
    """

    sums: Mapping[tuple[int, int, bool], float] = field(default_factory=lambda: SUMS)
    loads: float = 0.00482
    shared: float = 1.151
    beside_lines: float = 2.168
    writes: float = 0.048
    memory: float = 0.1694
    begin: float = 1.98
    exchange: float = 1.49
    exchange_sums: float = 0.0579
    overlap: float = 2.003


CONSTANTS = Constants()
CLUSTERS = ((1, 1), (2, 1), (1, 2))
"""The blocks along M and N that share tiles."""
NARROW = 64
"""Rows or columns of tiles that serve one wave alone: with more, they were up to 1.45 times slower than the model."""
SHARING = ((128, 64), (128, 128), (128, 192), (128, 256), (256, 64), (256, 128), (192, 128), (192, 192))
"""The tiles whose K several blocks share."""
LEAST_STRIPS = 8
"""The fewest strips of K of a block that shares them."""
ROOM = 192 * 1024
"""The shared memory of a block's stages, in bytes."""


@lru_cache(maxsize=1024)
def usual_config(m: int, n: int, takes_turns: bool, cluster: tuple[int, int], splits: int = 1) -> Config:
    """The configuration of a tile; 192 rows are for three consumers."""
    consumers, buffers = (3, 1) if m == 192 else (2, 2)
    if n % ROWS:  # parts of half as many columns are stored at a time
        buffers *= 2
    stages, group = min(ROOM // ((m + n) * 128), 10), 16 if cluster == (1, 2) else 8
    return Config(m, n, consumers, stages, cluster, takes_turns, group, buffers, splits)


@cache
def candidates() -> tuple[Config, ...]:
    """The configurations: all tiles, and for those that load much, blocks that share tiles."""
    return tuple(
        usual_config(m, n, takes_turns, cluster)
        for m, n, takes_turns in SUMS for cluster in CLUSTERS if cluster == (1, 1) or m * n >= 128 * 128
    )  # fmt: skip


def most_splits(m: int, n: int, k: int, blocks: int, tile: tuple[int, int]) -> int:
    """The most blocks that can share K of each tile that is left over from whole waves."""
    rest = -(-m // tile[0]) * -(-n // tile[1]) % blocks
    return min(blocks // rest, k // (64 * LEAST_STRIPS), 8) if rest else 1


def sharing_k(m: int, n: int, k: int, blocks: int) -> Iterator[Config]:
    """The configurations with which blocks share K, each tile with the number of blocks that the model finds best."""
    c = CONSTANTS
    for high, wide in SHARING:
        most = most_splits(m, n, k, blocks, (high, wide))
        if most > 1:
            work = k / 64 * high * wide * 64e-6 * c.sums[high, wide, False]
            best = round((work / (c.exchange_sums * high * wide / 1000)) ** 0.5)
            yield usual_config(high, wide, False, (1, 1), max(2, min(best, most)))


Parts = tuple[int, int, int, int, float, float, float, bool, float]
Row = tuple[Config, Parts]


@lru_cache(maxsize=1024)
def _row(config: Config) -> Row:
    return config, _parts(config, CONSTANTS)


@lru_cache(maxsize=16)
def _rows(blocks: int) -> tuple[tuple[Row, ...], tuple[Row, ...]]:
    """The configurations that so many blocks can have for any problem, and those for one wave alone."""
    rows = [_row(config) for config in candidates() if blocks >= config.cluster[0] * config.cluster[1]]
    narrow = tuple(row for row in rows if min(row[0].m, row[0].n) <= NARROW)
    return tuple(row for row in rows if row not in narrow), narrow


def microseconds(
    config: Config, m: int, n: int, k: int, blocks: int, layers: int = 1, constants: Constants = CONSTANTS
) -> float:
    """The time of a product of 16-bit elements with these extents, by so many blocks."""
    return _times([(config, _parts(config, constants))], m, n, k, blocks, layers, constants)[0]


def _times(rows: Sequence[Row], m: int, n: int, k: int, blocks: int, layers: int, constants: Constants) -> list[float]:
    """The times by configurations; one loop for all, since it decides how long a choice takes."""
    strips, is_beside, power, root = -(-k // 64), 2 * k % 128 > 0, constants.overlap, 1 / constants.overlap
    memory = ((m * k + n * k + m * n) * layers * 2e-6 * constants.memory) ** power
    times: list[float] = []
    for _, (high, wide, together, splits, strip, beside, write, is_hidden, ends) in rows:
        whole, rest = divmod(-(-m // high) * -(-n // wide) * layers, blocks // together)
        turns = whole * strips + (-(-strips // splits) if rest else 0)
        tile = turns * (beside if is_beside else strip) + (write if is_hidden else write * (whole + (rest > 0)))
        times.append((tile**power + memory) ** root + ends)
    return times


def _parts(config: Config, c: Constants) -> Parts:
    """The tiles of a cluster, its blocks, those that share K, and the times of a strip of K, of one whose rows begin
    beside lines, of a tile's sums, whether consumers that take turns hide these, and of the beginning and the end.
    """
    (along_m, along_n), sums = config.cluster, config.m * config.n
    multiply = sums * 64e-6 * c.sums[config.m, config.n, config.takes_turns]
    loads = (config.m / along_n + config.n / along_m) * 0.128 * c.loads * (1 if config.cluster == (1, 1) else c.shared)
    strip, beside = (_together(multiply, loads * factor, c.overlap) for factor in (1, c.beside_lines))
    exchange = (config.splits - 1) * c.exchange_sums * sums / 1000 + c.exchange if config.splits > 1 else 0.0
    tiles = config.m * along_m, config.n * along_n, along_m * along_n, config.splits
    return *tiles, strip, beside, sums / 1000 * c.writes, config.takes_turns, exchange + c.begin


def _together(a: float, b: float, overlap: float) -> float:
    """The time of two kinds of work that go on at the same time."""
    return (a**overlap + b**overlap) ** (1 / overlap)


def fits(config: Config, m: int, n: int, blocks: int, layers: int = 1) -> bool:
    """Whether so many blocks can have a configuration, and the model holds for it."""
    if min(config.m, config.n) <= NARROW and -(-m // config.m) * -(-n // config.n) * layers > blocks:
        return False
    return blocks >= config.cluster[0] * config.cluster[1]


@lru_cache(maxsize=4096)
def ranked(
    m: int, n: int, k: int, blocks: int, layers: int = 1, count: int = 1, shares_k: bool = False
) -> tuple[Config, ...]:
    """The configurations whose times the model finds shortest, the first one first; of equal ones the largest tile, and
    clusters along M where M has few tiles. Blocks share K only where a caller says that it has the memory.
    """
    wide, narrow = _rows(blocks)
    rows = [*wide, *(row for row in narrow if fits(row[0], m, n, blocks, layers))]
    if shares_k and layers == 1:
        rows += map(_row, sharing_k(m, n, k, blocks))
    times = _times(rows, m, n, k, blocks, layers, CONSTANTS)
    limit = nsmallest(count, times)[-1] + 1e-3
    preferred = (2, 1) if m <= 512 else (1, 2)

    def key(each: tuple[float, Config]) -> tuple[float, int, bool]:
        time, config = each
        return round(time, 3), -config.m * config.n, config.cluster != preferred

    near = [(time, config) for time, (config, _) in zip(times, rows, strict=True) if time <= limit]
    return tuple(config for _, config in sorted(near, key=key)[:count])
