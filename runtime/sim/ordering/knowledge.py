# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What orders threads beyond the barrier of a whole block: barriers of some warps, and releases that are acquired.

A thread's knowledge says up to when each other thread's accesses happened before its own next ones. A barrier of some
warps hands on all that they know; an atomic write that releases leaves the writer's knowledge at its address, and one
that acquires takes it from there (PTX ISA, Memory Consistency Model: release and acquire patterns, also those of a
fence and a relaxed operation). It is kept for the lanes of a warp in common.
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from ..warp import Warp

Knowledge: TypeAlias = Mapping[int, NDArray[np.int64]]
"""By the number of a block, for each of its threads: what it did before this time is known. Never changed in place."""


def joined(parts: Iterable[Knowledge]) -> Knowledge:
    """All that any of the parts knows."""
    total: dict[int, NDArray[np.int64]] = {}
    for part in parts:
        for block, times in part.items():
            total[block] = np.maximum(total[block], times) if block in total else times
    return total


def snapshot(warp: "Warp", lanes: NDArray[np.int64]) -> Knowledge:
    """What the given lanes of a warp know now, their own accesses included; advances the clock past these."""
    block = warp.block
    times = np.full(block.launch.config.threads, block.epoch, np.int64)
    first = warp.first_thread
    own = times[first : first + warp.lanes]
    np.maximum(own, warp.seen[lanes].max(axis=0), out=own)
    times[first + lanes] = block.launch.tick()
    return joined(({block.number: times}, warp.known))


def copied(warp: "Warp", lanes: NDArray[np.int64]) -> Knowledge:
    """That the asynchronous copies of the given lanes up to now are complete; advances the clock past these.

    They count as those of a block that follows all others, since what waits for them does not wait for their threads.
    """
    config = warp.launch.config
    times = np.zeros(config.threads, np.int64)
    times[warp.first_thread + lanes] = warp.launch.tick()
    return {config.blocks + warp.block.number: times}


def knows(warp: "Warp", time: int, agent: int, lanes: int) -> bool:
    """Whether the warp knows an access of thread `agent` at a time; it stands for `lanes` threads around it: 1, those
    of its warp (32), or all of its block (any more).
    """
    threads = warp.launch.config.threads
    block, thread = divmod(agent - 1, threads)
    times = warp.known.get(block)
    if times is None:
        return False
    first = thread // lanes * lanes if lanes <= 32 else 0
    return time < int(times[first : first + lanes].min())


class Releases:
    """What was released at each address of a state space."""

    def __init__(self) -> None:
        self._at: dict[int, Knowledge] = {}

    def write(self, warp: "Warp", address: int, lane: int, releases: bool, replaces: bool) -> None:
        """An atomic write by a lane: it leaves what the lane knows, or knew at its last fence.

        A write that reads as well keeps what was there: it continues the release sequence.
        """
        left = snapshot(warp, np.array([lane])) if releases else warp.fenced
        before: Knowledge = {} if replaces else self._at.get(address, {})
        if left or before or replaces:
            self._at[address] = joined((before, left))

    def read(self, warp: "Warp", address: int, acquires: bool) -> None:
        """An atomic read: it takes what was left at the address, at once or at the next fence."""
        found = self._at.get(address)
        if not found:
            return
        if acquires:
            warp.known = joined((warp.known, found))
        else:
            warp.observed = joined((warp.observed, found))


def fence(warp: "Warp") -> None:
    """A fence of the active lanes: relaxed writes after it release, relaxed reads before it acquire."""
    warp.known = joined((warp.known, warp.observed))
    warp.observed = {}
    warp.fenced = snapshot(warp, warp.lane_numbers())


def meet(arrived: Iterable["Warp"], waiting: Iterable["Warp"]) -> None:
    """A barrier of some warps: those that waited know what all who arrived knew and did when they arrived."""
    total = joined(warp.offered for warp in arrived)
    for warp in waiting:
        warp.known = joined((warp.known, total))
        warp.seen[:] = warp.launch.clock
