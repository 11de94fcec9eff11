# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The memory operations of a program, and the costs of a warp's accesses (`layout.tiling.warp_accesses`): wavefronts of
shared memory, sectors of global memory.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....base.target import BANK_BYTES, BANKS, SECTOR_BYTES, WARP
from ....layout.tiling import warp_accesses
from ...counters import AccessCount
from ..faults import Site
from .arena import Allocation


def wavefronts(addresses: NDArray[Any], lanes: NDArray[Any], width: int) -> tuple[int, int]:
    """Wavefronts of an access of `width` bytes by `lanes` at byte `addresses`, and the least possible."""
    period = BANKS * BANK_BYTES  # moving all addresses by it changes no bank
    start = int(addresses[0]) // period * period
    return _wavefronts((addresses - start).tobytes(), lanes.astype(np.int64).tobytes(), width)


@lru_cache(maxsize=4096)
def _wavefronts(addresses: bytes, lanes: bytes, width: int) -> tuple[int, int]:
    numbers = np.frombuffer(lanes, np.int64)
    if numbers[-1] >= WARP:
        return _sum(wavefronts(at, lane, width) for at, lane in _by_warp(addresses, numbers))
    at, lane = np.frombuffer(addresses, np.int64), np.frombuffer(lanes, np.int64)
    return warp_accesses.wavefronts(at.tolist(), lane.tolist(), width)


def sectors(addresses: NDArray[Any], width: int, lanes: NDArray[Any] | None = None) -> tuple[int, int]:
    """Sectors that an access of `width` bytes by `lanes` at byte `addresses` touches, and the least that the bytes can
    occupy; the sum over the warps of the `lanes`, where those are of several.
    """
    start = int(addresses[0]) // SECTOR_BYTES * SECTOR_BYTES
    return _sectors((addresses - start).tobytes(), b"" if lanes is None else lanes.tobytes(), width)


@lru_cache(maxsize=4096)
def _sectors(addresses: bytes, lanes: bytes, width: int) -> tuple[int, int]:
    numbers = np.frombuffer(lanes, np.int64)
    if len(numbers) and numbers[-1] >= WARP:
        return _sum(sectors(at, width) for at, _ in _by_warp(addresses, numbers))
    return warp_accesses.sectors(np.frombuffer(addresses, np.int64).tolist(), width)


def _by_warp(addresses: bytes, lanes: NDArray[Any]) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
    """The addresses and the lanes of each warp, these counted in the warp."""
    borders = np.flatnonzero(np.diff(lanes // WARP)) + 1
    return zip(np.split(np.frombuffer(addresses, np.int64), borders), np.split(lanes % WARP, borders), strict=True)


def _sum(costs: Iterable[tuple[int, int]]) -> tuple[int, int]:
    parts = list(costs)
    return sum(count for count, _ in parts), sum(least for _, least in parts)


@dataclass(slots=True)
class Access:
    """A memory operation of the program with the costs of its executions so far."""

    site: Site
    space: str
    kind: str
    width: int
    requests: int = 0
    threads: int = 0
    transactions: int = 0
    minimum: int = 0
    home: Allocation | None = None
    """The allocation from which the address was computed, where that is known."""
    scope: str = "gpu"
    """The threads among which it is atomic, if it is."""
    constant: bool = False
    """Whether it is a load that promises that nothing writes its data."""

    def count(self) -> AccessCount:
        """The counts so far, for the report."""
        return AccessCount(
            self.site.op, self.site.location, self.space, self.kind, self.width,
            self.requests, self.threads, self.transactions, self.minimum,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Atomic:
    """The effect of an atomic read and write, and its order."""

    change: Callable[[int, NDArray[np.uint8]], NDArray[np.uint8]]
    acquires: bool
    releases: bool
    is_seen: bool = True
    """Whether the kernel uses the old value, so that its next operations may depend on earlier writes."""
