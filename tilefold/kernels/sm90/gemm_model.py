# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A model of the time that a GEMM on Hopper takes with each configuration, from which the fastest is chosen.

Blocks go through their tiles in waves. A tile takes, for each strip of 128 bytes of K, the time of the tensor cores or
that of the bytes from the L2 cache, mostly the longer one; and the time of writing its sums, which consumers that take
turns hide but for the last tile. No product is faster than the memory. The constants are fitted to the sweep in
docs/performance.md: 18 shapes in bf16, 32 configurations each.
"""

from collections.abc import Iterator
from functools import lru_cache
from heapq import nsmallest

from .parts import Config

SUMS = {
    (64, 64, True): 0.745, (64, 128, True): 0.525, (64, 192, True): 0.419, (64, 256, True): 0.387,
    (128, 64, True): 0.589, (128, 64, False): 0.581, (128, 128, True): 0.346, (128, 128, False): 0.335,
    (128, 192, True): 0.328, (128, 192, False): 0.322, (128, 256, False): 0.315, (256, 64, False): 0.444,
    (256, 128, False): 0.323, (256, 192, False): 0.315,
}  # fmt: skip
"""Microseconds of the tensor cores for 10^6 products of 16 bits, by the tile and whether consumers take turns."""
LOADS = 0.0078
"""Microseconds for 1000 bytes from the L2 cache."""
WRITES = 0.0548
"""Microseconds for 1000 sums."""
BESIDE_LINES = 2.35
"""The factor of loads whose rows do not begin at lines of the L2 cache."""
OVERLAP = 6.6
"""The exponent by which work at the same time adds up: the greater, the less the shorter one costs."""
MEMORY = 0.411
"""Microseconds for 10^6 bytes of memory."""
CLUSTERS = ((1, 1), (2, 1), (1, 2))
ROOM = 192 * 1024
"""The shared memory of a block's stages, in bytes."""


def candidates() -> Iterator[Config]:
    """The configurations: all tiles, and for those that load much, blocks that share tiles."""
    for m, n, takes_turns in SUMS:
        for cluster in CLUSTERS[: 3 if m * n >= 128 * 128 else 1]:
            stages = min(ROOM // ((m + n) * 128), 10)
            yield Config(m, n, 2, stages, cluster, takes_turns, 16 if cluster == (1, 2) else 8)


def microseconds(config: Config, m: int, n: int, k: int, blocks: int, layers: int = 1) -> float:
    """The time of a product of 16-bit elements with these extents, by so many blocks."""
    along_m, along_n = config.cluster
    high = -(-m // (config.m * along_m)) * along_m
    wide = -(-n // (config.n * along_n)) * along_n
    waves = -(-high * wide * layers // (blocks // (along_m * along_n) * along_m * along_n))
    sums = config.m * config.n
    multiply = sums * 64e-6 * SUMS[config.m, config.n, config.takes_turns]
    load = (config.m / along_n + config.n / along_m) * 0.128 * LOADS
    if 2 * k % 128:
        load *= BESIDE_LINES
    write = sums / 1000 * WRITES * (1 if config.takes_turns else waves)
    tile = waves * k / 64 * _together(multiply, load) + write
    return _together(tile, (m * k + n * k + m * n) * layers * 2e-6 * MEMORY)


def _together(a: float, b: float) -> float:
    """The time of two kinds of work that go on at the same time."""
    return (a**OVERLAP + b**OVERLAP) ** (1 / OVERLAP)


@lru_cache(maxsize=4096)
def ranked(m: int, n: int, k: int, blocks: int, layers: int = 1, count: int = 1) -> tuple[Config, ...]:
    """The configurations whose times the model finds shortest, the first one first; of equal ones the largest tile, and
    clusters along M where M has few tiles.
    """
    fitting = [config for config in candidates() if blocks >= config.cluster[0] * config.cluster[1]]
    preferred = (2, 1) if m <= 512 else (1, 2)

    def key(c: Config) -> tuple[float, int, bool]:
        return round(microseconds(c, m, n, k, blocks, layers), 3), -c.m * c.n, c.cluster != preferred

    return tuple(nsmallest(count, fitting, key=key))


def fastest(m: int, n: int, k: int, blocks: int, layers: int = 1) -> Config:
    """The first of these."""
    return ranked(m, n, k, blocks, layers)[0]
