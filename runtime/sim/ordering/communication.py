# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The order in which atomic accesses communicate: whether an execution with outdated values could also be that of some
order of the threads.

An execution is as in an order of the threads if no cycle leads along the causality order, from a write to those who
read it, from a write to the next one at its place, and from a read to the write behind the one that it has read
(Shasha and Snir, Efficient and Correct Execution of Parallel Programs that Share Memory, TOPLAS 1988). Accesses that
are not atomic need no edges: without a race, the causality order has them.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ....base.target import WARP
from ..warp import Cluster, Warp
from .clocks import Times

_MOST = 10_000
"""The most accesses that are kept; later ones find the newest values."""
_NEVER = np.iinfo(np.int64).max


@dataclass(slots=True, eq=False)
class FirstAccesses:
    """The first access of each thread of some kind: its time, by the cluster of the thread and its place there."""

    _times: dict[int, Times] = field(default_factory=dict[int, Times])

    def add(self, cluster: Cluster, agent: int, time: int) -> None:
        """An access at a time by a thread of a launch with such clusters."""
        number, place = cluster.place_of(agent)
        times = self._times.get(number)
        if times is None:
            times = self._times[number] = np.full(cluster.threads, _NEVER)
        times[place] = min(int(times[place]), time)

    def known(self, warp: Warp, index: int, before: dict[int, Times]) -> Iterator[tuple[int, Times, NDArray[np.intp]]]:
        """The clusters with threads whose first accesses an active lane knows, with the lane's times of their threads
        and the places of these. `before` has the lane's times at its last question, which is not answered again; it
        becomes the present ones.
        """
        for number, times in known_clocks(warp, index):
            first, last = self._times.get(number), before.get(number)
            if first is None or last is times:
                continue
            before[number] = times
            is_new = _are_known(first, times)
            if last is not None:
                common = min(len(is_new), len(last))
                is_new[:common] &= times[:common] > last[:common]
            if (places := np.flatnonzero(is_new)).size:
                yield number, times, places

    def any_known(self, clocks: Iterable[tuple[int, Times]]) -> bool:
        """Whether one of these times, by their cluster, is behind a first access."""
        return any(
            (first := self._times.get(number)) is not None and bool(_are_known(first, times).any())
            for number, times in clocks
        )


def _are_known(first: Times, times: Times) -> NDArray[np.bool_]:
    """Which first accesses come before the times of their threads; a clock may be from before some agents opened."""
    return times[: len(first)] > first[: len(times)]


def known_clocks(warp: Warp, index: int) -> Iterator[tuple[int, Times]]:
    """An active lane's knowledge of its own cluster and of others: times by the cluster's number."""
    lane = int(warp.lane_numbers()[index])
    clock, own = warp.clock, warp.own.get(lane)
    if own is not None:
        clock = clock.joined(own.clock)
    times, width = clock.times, warp.seen.shape[1]
    if (seen := warp.seen[lane]).any():
        first = warp.first_index + lane // WARP * WARP
        times = times.copy()
        np.maximum(times[first : first + width], seen[: len(times) - first], out=times[first : first + width])
    yield clock.cluster, times
    yield from clock.earlier.items()


@dataclass(slots=True, eq=False)
class Communication:
    """The atomic accesses of a launch, by number, and which ones come directly behind each."""

    _after: list[list[int]] = field(default_factory=list[list[int]])
    _of: dict[tuple[int, int], tuple[list[int], list[int]]] = field(
        default_factory=dict[tuple[int, int], tuple[list[int], list[int]]]
    )
    """The times and numbers of the accesses of each thread, by its cluster and its place there."""
    _first: FirstAccesses = field(default_factory=FirstAccesses)
    _asked: dict[tuple[int, int], dict[int, Times]] = field(default_factory=dict[tuple[int, int], dict[int, Times]])
    """What each thread has known at its last access."""
    is_cut: bool = False
    """Whether there were more accesses than are kept."""

    @property
    def count(self) -> int:
        """The number of accesses that are kept."""
        return len(self._after)

    @property
    def kept(self) -> int | None:
        """How many accesses are kept; None for all."""
        return _MOST if self.is_cut else None

    def add(self, warp: Warp, index: int, agent: int) -> int | None:
        """An access by an active lane now, behind those that the lane knows; None if there are too many."""
        number, time = len(self._after), warp.launch.clock
        if number >= _MOST:
            self.is_cut = True
            return None
        self._after.append([])
        thread = warp.block.cluster.place_of(agent)
        asked = self._asked.setdefault(thread, {})
        for cluster, known, places in self._first.known(warp, index, asked):
            for place in places.tolist():
                times, numbers = self._of[cluster, place]
                if last := bisect_left(times, int(known[place])):
                    self.order(numbers[last - 1], number)
        times, numbers = self._of.setdefault(thread, ([], []))
        if numbers:
            self.order(numbers[-1], number)
        else:
            self._first.add(warp.block.cluster, agent, time)
        times.append(time)
        numbers.append(number)
        return number

    def order(self, first: int | None, second: int | None) -> None:
        """One access comes before another."""
        if first is not None and second is not None and first != second:
            self._after[first].append(second)

    def is_cyclic(self) -> bool:
        """Whether no order of the threads has these values; True if that is not known."""
        if self.is_cut:
            return True
        before = [0] * len(self._after)
        for following in self._after:
            for number in following:
                before[number] += 1
        free = [number for number, count in enumerate(before) if not count]
        for number in free:  # grows
            for later in self._after[number]:
                before[later] -= 1
                if not before[later]:
                    free.append(later)
        return len(free) < len(before)
