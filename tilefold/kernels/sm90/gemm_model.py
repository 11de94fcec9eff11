# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A model of the time that a GEMM on Hopper takes with each configuration, from which the fastest is chosen.

Blocks go through their tiles in waves. A tile takes, for each strip of 128 bytes of K, the time of the tensor cores or
that of the bytes from the L2 cache, mostly the longer one; and the time of writing its sums, which consumers that take
turns hide but for the last tile. No product is faster than the memory. Where blocks share K of a tile, each has a part
of the strips, and their sums go through memory. The constants are fitted to the sweeps in docs/performance.md.
"""

from collections.abc import Iterator
from functools import cache, lru_cache
from heapq import nsmallest

from .parts import Config

SUMS = {
    (64, 64, True): 0.582, (64, 128, True): 0.426, (64, 192, True): 0.39, (64, 256, True): 0.401,
    (128, 64, True): 0.456, (128, 64, False): 0.455, (128, 128, True): 0.347, (128, 128, False): 0.314,
    (128, 192, True): 0.296, (128, 192, False): 0.298, (128, 256, False): 0.295, (256, 64, False): 0.444,
    (256, 128, False): 0.299, (256, 192, False): 0.286,
}  # fmt: skip
"""Microseconds of the tensor cores for 10^6 products of 16 bits, by the tile and whether consumers take turns."""
LOADS = 0.0068
"""Microseconds for 1000 bytes from the L2 cache."""
WRITES = 0.0578
"""Microseconds for 1000 sums."""
BESIDE_LINES = 2.5
"""The factor of loads whose rows do not begin at lines of the L2 cache."""
OVERLAP = 7.1
"""The exponent by which work at the same time adds up: the greater, the less the shorter one costs."""
MEMORY = 0.409
"""Microseconds for 10^6 bytes of memory."""
CLUSTERS = {(1, 1): 1.0, (2, 1): 1.1, (1, 2): 1.1}
"""The factors of loads by blocks that share tiles."""
BEGIN = 1.8
"""Microseconds until the first products, and after the last ones."""
EXCHANGE, EXCHANGE_SUMS = 3.0, 0.06
"""Microseconds in which a block hands over its sums, and those for 1000 of them."""
NARROW = 64
"""Rows or columns of tiles that serve one wave alone: with more, they were up to 1.45 times slower than the model."""
SHARING = ((128, 64), (128, 128), (128, 192), (128, 256), (256, 64), (256, 128))
"""The tiles whose K several blocks share."""
LEAST_STRIPS = 8
"""The fewest strips of K of a block that shares them."""
ROOM = 192 * 1024
"""The shared memory of a block's stages, in bytes."""


@cache
def candidates() -> tuple[Config, ...]:
    """The configurations: all tiles, and for those that load much, blocks that share tiles."""
    return tuple(
        Config(m, n, 2, min(ROOM // ((m + n) * 128), 10), cluster, takes_turns, 16 if cluster == (1, 2) else 8)
        for m, n, takes_turns in SUMS for cluster in CLUSTERS if cluster == (1, 1) or m * n >= 128 * 128
    )  # fmt: skip


def sharing_k(m: int, n: int, k: int, blocks: int) -> Iterator[Config]:
    """The configurations with which blocks share K, for a product that has at most half as many tiles."""
    for high, wide in SHARING:
        splits = min(blocks // (-(-m // high) * -(-n // wide)), k // (64 * LEAST_STRIPS), 8)
        if splits > 1:
            yield Config(high, wide, 2, min(ROOM // ((high + wide) * 128), 10), takes_turns=False, splits=splits)


def microseconds(config: Config, m: int, n: int, k: int, blocks: int, layers: int = 1) -> float:
    """The time of a product of 16-bit elements with these extents, by so many blocks."""
    along_m, along_n = config.cluster
    high = -(-m // (config.m * along_m)) * along_m
    wide = -(-n // (config.n * along_n)) * along_n
    waves = -(-high * wide * layers // (blocks // (along_m * along_n) * along_m * along_n))
    sums = config.m * config.n
    multiply = sums * 64e-6 * SUMS[config.m, config.n, config.takes_turns]
    load = (config.m / along_n + config.n / along_m) * 0.128 * LOADS * CLUSTERS[config.cluster]
    if 2 * k % 128:
        load *= BESIDE_LINES
    write = sums / 1000 * WRITES * (1 if config.takes_turns else waves)
    strips = k / 64 if config.splits == 1 else -(-k // (64 * config.splits))
    tile = waves * strips * _together(multiply, load) + write
    exchange = (config.splits - 1) * EXCHANGE_SUMS * sums / 1000 + EXCHANGE if config.splits > 1 else 0.0
    return _together(tile, (m * k + n * k + m * n) * layers * 2e-6 * MEMORY) + exchange + BEGIN


def _together(a: float, b: float) -> float:
    """The time of two kinds of work that go on at the same time."""
    return (a**OVERLAP + b**OVERLAP) ** (1 / OVERLAP)


def fits(config: Config, m: int, n: int, blocks: int, layers: int = 1) -> bool:
    """Whether so many blocks can have a configuration, and the model holds for it."""
    is_narrow = min(config.m, config.n) <= NARROW
    one_wave = -(-m // config.m) * -(-n // config.n) * layers <= blocks
    return blocks >= config.cluster[0] * config.cluster[1] and (one_wave or not is_narrow)


@lru_cache(maxsize=4096)
def ranked(
    m: int, n: int, k: int, blocks: int, layers: int = 1, count: int = 1, shares_k: bool = False
) -> tuple[Config, ...]:
    """The configurations whose times the model finds shortest, the first one first; of equal ones the largest tile, and
    clusters along M where M has few tiles. Blocks share K only where a caller says that it has the memory.
    """
    fitting = [config for config in candidates() if fits(config, m, n, blocks, layers)]
    if shares_k and layers == 1:
        fitting += sharing_k(m, n, k, blocks)
    preferred = (2, 1) if m <= 512 else (1, 2)

    def key(c: Config) -> tuple[float, int, bool]:
        return round(microseconds(c, m, n, k, blocks, layers), 3), -c.m * c.n, c.cluster != preferred

    return tuple(nsmallest(count, fitting, key=key))
