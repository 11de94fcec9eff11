# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The order in which atomic accesses communicate: whether an execution with outdated values could also be that of some
order of the threads.

An execution is as in an order of the threads if no cycle leads along the causality order, from a write to those who
read it, from a write to the next one at its place, and from a read to the write behind the one that it has read
(Shasha and Snir, Efficient and Correct Execution of Parallel Programs that Share Memory, TOPLAS 1988). Accesses that
are not atomic need no edges: without a race, the causality order has them.
"""

from bisect import bisect_left
from dataclasses import dataclass, field

import numpy as np

from ..warp import Warp
from .clocks import AGENT
from .knowledge import known_until

_MOST = 600
"""The most accesses that are kept: those behind them find the newest values."""


@dataclass(slots=True, eq=False)
class Communication:
    """The atomic accesses of a launch, by number, and which ones come directly behind each."""

    _after: list[list[int]] = field(default_factory=list[list[int]])
    _of: dict[int, tuple[list[int], list[int]]] = field(default_factory=dict[int, tuple[list[int], list[int]]])
    """The times and numbers of the accesses of each agent."""
    is_cut: bool = False
    """Whether there were more accesses than are kept."""

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
        if others := [other for other in self._of if other != agent]:
            entries = np.array([self._of[other][0][-1] << 32 | other & AGENT for other in others], np.int64)
            known = known_until(warp, np.full(len(others), index), entries).tolist()
            for other, until in zip(others, known, strict=True):
                times, numbers = self._of[other]
                if last := bisect_left(times, until):
                    self.order(numbers[last - 1], number)
        times, numbers = self._of.setdefault(agent, ([], []))
        if numbers:
            self.order(numbers[-1], number)
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
