# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A model of the time that a GEMM on Hopper takes with each configuration, from which the fastest is chosen.

Blocks go through their tiles in waves. A tile takes, for each strip of 128 bytes of K, the time of the tensor cores or
that of the bytes from the L2 cache, mostly the longer one; and the time of writing its sums, which consumers that take
turns hide but for the last tile. No product is faster than the memory. Where blocks share K of the tiles of the last
wave, each has a part of the strips, and their sums go through memory. The constants are fitted to measured points of an
H200 (`python -m benchmarks.gemm_fit`).
"""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from math import inf
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .parts import Config

SUMS: Mapping[tuple[int, int, bool], float] = MappingProxyType({
    (64, 64, True): 0.285, (64, 96, True): 0.28, (64, 128, True): 0.292, (64, 144, True): 0.33, (64, 176, True): 0.304,
    (64, 192, True): 0.315, (64, 256, True): 0.31, (128, 64, True): 0.292, (128, 64, False): 0.327,
    (128, 80, True): 0.34, (128, 96, True): 0.333, (128, 112, True): 0.335, (128, 128, True): 0.311,
    (128, 128, False): 0.304, (128, 144, True): 0.329, (128, 160, True): 0.312, (128, 176, True): 0.304,
    (128, 176, False): 0.297, (128, 192, True): 0.292, (128, 192, False): 0.29, (128, 208, False): 0.288,
    (128, 224, False): 0.285, (128, 240, False): 0.287, (128, 256, False): 0.289, (192, 96, False): 0.307,
    (192, 112, False): 0.305, (192, 128, False): 0.303, (192, 144, False): 0.291, (192, 160, False): 0.276,
    (192, 176, False): 0.283, (192, 192, False): 0.291, (256, 64, False): 0.368, (256, 112, False): 0.308,
    (256, 128, False): 0.299, (256, 144, False): 0.3, (256, 160, False): 0.286, (256, 176, False): 0.283,
    (256, 192, False): 0.287,
})  # fmt: skip
"""Microseconds of the tensor cores for 10^6 products of 16 bits, by the tile and whether consumers take turns."""


@dataclass(frozen=True, eq=False)
class Constants:
    """Microseconds of the tensor cores (see SUMS); for 1000 bytes from the L2 cache, with factors of blocks that share
    tiles, of rows that begin at sectors of 32 bytes but not at lines of the cache, and of rows beside sectors; for 1000
    sums that are written; for 10^6 bytes of memory; until the first products and after the last ones; in which a block
    hands over its sums, and for 1000 of them. `overlap` is the exponent by which work at the same time adds up: the
    greater, the less the shorter one costs.
    """

    sums: Mapping[tuple[int, int, bool], float] = field(default_factory=lambda: SUMS)
    loads: float = 0.00482
    shared: float = 1.079
    beside_lines: float = 1.6
    beside_sectors: float = 1.9
    writes: float = 0.0412
    memory: float = 0.1715
    begin: float = 2.153
    exchange: float = 1.378
    exchange_sums: float = 0.0727
    overlap: float = 1.845


CONSTANTS = Constants()
CLUSTERS = ((1, 1), (2, 1), (1, 2), (2, 2), (4, 1), (1, 4))
"""The blocks along M and N that share tiles."""
PAIRS = CLUSTERS[:3]
"""Those for operands that change places."""
NARROW, SMALL = 64, 128 * 128
"""Rows or columns of tiles, and sums of tiles in clusters, that serve one wave alone: with more waves, they were up to
1.45 times slower than the model.
"""
SHARING = ((128, 64), (128, 128), (128, 192), (128, 256), (256, 64), (256, 128), (192, 128), (192, 192))
"""The tiles whose K several blocks share."""
MOST_SPLITS, LEAST_STRIPS = 8, 8
"""The most blocks that share the K of a tile, and the fewest strips of K that each of them has."""
ROOM, STORED = 192 * 1024, 16 * 1024
"""The shared memory of a block's stages, in bytes, and that of a buffer of two consumers for D."""


@lru_cache(maxsize=1024)
def usual_config(
    m: int, n: int, takes_turns: bool, cluster: tuple[int, int], splits: int = 1, swaps: bool = False
) -> Config:
    """The configuration of a tile; 192 rows are for three consumers. D has one buffer where that makes room for a
    fourth stage.
    """
    consumers, strip = 3 if m == 192 else 2, (m + n) * 128
    buffers = 1 if consumers == 3 or ROOM // strip < min(4, (ROOM + STORED) // strip) else 2
    stages, group = min((ROOM + (2 - buffers) * STORED) // strip, 10), 16 if cluster == (1, 2) else 8
    return Config(m, n, consumers, stages, cluster, takes_turns, group, buffers, splits, swaps)


@cache
def candidates(small: bool = False) -> tuple[Config, ...]:
    """The configurations: all tiles, for those that load much clusters of blocks that share tiles; the high ones for
    operands that change places; and blocks that share K. Without the large tiles for `small` products.
    """
    if small:
        return tuple(config for config in candidates() if config.m * config.n <= SMALL)
    alone = (
        usual_config(*tile, cluster)
        for tile in SUMS for cluster in CLUSTERS
        if (cluster == (1, 1) or tile[0] * tile[1] >= SMALL // 2) and tile[1] // cluster[0] % 8 == 0
    )  # fmt: skip
    swapped = (
        usual_config(*tile, cluster, 1, True) for tile in SUMS for cluster in PAIRS
        if tile[0] > 128 and tile[1] < tile[0] and tile[1] // cluster[0] % 8 == 0
    )  # fmt: skip
    shared = (usual_config(*tile, False, (1, 1), splits) for tile in SHARING for splits in range(2, MOST_SPLITS + 1))
    return *alone, *swapped, *shared


Table = NDArray[Any]
"""A column for each configuration, with the rows of `parts`."""


@lru_cache(maxsize=16)
def _table(blocks: int, small: bool) -> Table:
    return table_of(candidates(small), blocks)


def table_of(configs: Sequence[Config], blocks: int, constants: Constants = CONSTANTS) -> Table:
    """The numbers of configurations from which `times` finds the times by this many blocks."""
    return np.array([_parts(config, blocks, constants) for config in configs]).T.copy()


def times(table: Table, m: int, n: int, k: int, layers: int = 1, constants: Constants = CONSTANTS) -> NDArray[Any]:
    """The times of a product of 16-bit elements with these extents by the configurations of a table; infinite for those
    that do not come into question. All at once, since this decides how long a choice takes.
    """
    high, wide, slots, most, splits, least, limit, fewest, *at_lines, write, half, last, ends = table
    power, strips = constants.overlap, -(-k // 64)
    memory = ((m * k + n * k + m * n) * layers * 2e-6 * constants.memory) ** power
    count = np.ceil(m / high) * np.ceil(n / wide)
    if layers > 1:
        count *= layers
    whole = np.floor(count / slots)
    rest = count - whole * slots
    is_over = np.minimum(rest, 1.0)
    turns = whole * strips + is_over * np.ceil(strips / splits)
    multiply = turns * at_lines[2 if 2 * k % 32 else 1 if 2 * k % 128 else 0]
    writes = write * (whole + is_over)
    tile = np.maximum(multiply, (multiply + writes) * half) + last  # in turns, each writes while the other multiplies
    found = np.power(np.power(tile, power) + memory, 1 / power) + ends
    sharing = rest * splits
    found[(count > most) | (sharing < least) | (sharing > limit) | (fewest > (0 if layers > 1 else k))] = inf
    return found


def _parts(config: Config, blocks: int, c: Constants) -> tuple[float, ...]:
    """The extents of a cluster, the clusters at a time and those at most; the blocks that share K, the least and the
    most blocks that have parts of tiles, and the least K; the times of a strip of K, of one whose rows begin beside
    lines of the L2 cache, and of one beside its sectors; the time of a tile's sums, the part of the whole time that is
    not hidden, and the sums at the end, since consumers that take turns write while the other one multiplies; and the
    times of the beginning and the end.
    """
    (along_m, along_n), sums = config.cluster, config.m * config.n
    cluster_size = along_m * along_n
    multiply = sums * 64e-6 * c.sums[config.m, config.n, config.takes_turns]
    loads = (config.m / along_n + config.n / along_m) * 0.128 * c.loads * (1 if cluster_size == 1 else c.shared)
    at_lines = (_overlapped(multiply, loads * factor, c.overlap) for factor in (1, c.beside_lines, c.beside_sectors))
    exchange = (config.splits - 1) * c.exchange_sums * sums / 1000 + c.exchange if config.splits > 1 else 0.0
    slots = blocks // cluster_size
    most = slots if min(config.m, config.n) <= NARROW or (cluster_size > 1 and sums < SMALL) else inf
    if cluster_size > 2:  # parts of a GPU have multiprocessors left over
        most = slots * 10 // 11
    shares = 0.0, inf, 0.0
    if config.splits > 1:
        most, shares = inf, (1.0, blocks, config.splits * 64.0 * LEAST_STRIPS)
    extents = (config.n * along_n, config.m * along_m) if config.swaps else (config.m * along_m, config.n * along_n)
    write = sums / 1000 * c.writes
    unhidden = (0.5, write) if config.takes_turns else (1.0, 0.0)
    tiles = *extents, max(slots, 1), most if slots else 0, config.splits, *shares
    return *tiles, *at_lines, write, *unhidden, exchange + c.begin


def _overlapped(a: float, b: float, overlap: float) -> float:
    """The time of two kinds of work that go on at the same time."""
    return (a**overlap + b**overlap) ** (1 / overlap)


def ranked(
    m: int, n: int, k: int, blocks: int, layers: int = 1, count: int = 1, shares_k: bool = False
) -> tuple[Config, ...]:
    """The configurations of `rated`."""
    return tuple(config for _, config in rated(m, n, k, blocks, layers, count, shares_k))


@lru_cache(maxsize=4096)
def rated(
    m: int, n: int, k: int, blocks: int, layers: int = 1, count: int = 1, shares_k: bool = False
) -> tuple[tuple[float, Config], ...]:
    """The configurations whose times the model finds shortest, with these, the first one first; of equal ones the
    largest tile, operands in their places, and clusters along M where M has few tiles. Blocks share K only where a
    caller says that it has the memory.
    """
    small = m * n * layers <= blocks * NARROW * NARROW
    configs, found = candidates(small), times(_table(blocks, small), m, n, k, layers)
    if not shares_k:
        found = found[: _alone(small)]
    count = min(count, len(found))
    limit = found.min() if count == 1 else np.partition(found, count - 1)[count - 1]
    preferred = (2, 1) if m <= 512 else (1, 2)

    def key(number: int) -> tuple[float, int, bool, bool]:
        config = configs[number]
        return round(float(found[number]), 3), -config.m * config.n, config.swaps, config.cluster != preferred

    near = np.flatnonzero(found <= min(limit + 1e-3, sys.float_info.max)).tolist()
    return tuple((float(found[number]), configs[number]) for number in sorted(near, key=key)[:count])


@cache
def _alone(small: bool) -> int:
    """How many configurations share no K; these are the first ones."""
    return sum(config.splits == 1 for config in candidates(small))
