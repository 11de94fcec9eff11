# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Mbarriers: phases, arrivals of threads and of asynchronous copies, and what they order (PTX ISA, mbarrier).

When an asynchronous copy is complete, PTX leaves open. Here its bytes are in flight for as long as nobody looks at an
mbarrier that it arrives at, and it is complete once somebody does, so that whoever does not wait there is caught.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..memory.spaces import Space
from ..warp import Warp
from . import async_copy
from .knowledge import Knowledge, copied, joined


@dataclass(frozen=True, slots=True)
class Copies:
    """The asynchronous copies of some lanes up to a number: each of the lanes arrives when its own are complete."""

    warp: Warp
    lanes: NDArray[Any]
    number: int


@dataclass(slots=True)
class Mbarrier:
    """An mbarrier in a row of 8 bytes of shared memory: the arrivals that each phase needs, those that the current one
    still needs, and its number.
    """

    row: int
    expected: int
    pending: int = field(init=False)
    phase: int = 0
    copies: list[Copies] = field(default_factory=list[Copies])
    """Those that arrive when they are complete."""
    offered: Knowledge = field(default_factory=dict[int, NDArray[np.int64]])
    """What those know that have arrived."""
    released: Knowledge = field(default_factory=dict[int, NDArray[np.int64]])
    """What those knew that arrived in complete phases."""

    def __post_init__(self) -> None:
        self.pending = self.expected

    def arrive(self, count: int) -> None:
        """Counts arrivals, not more than the phase still needs; the last one completes it."""
        self.pending -= count
        if self.pending == 0:
            self.phase += 1
            self.pending = self.expected
            self.released = self.offered

    def finish_copies(self, shared: Space) -> None:
        """Completes the copies that are to arrive, one warp's after the other."""
        arriving, self.copies = self.copies, []
        for each in arriving:
            async_copy.complete(each.warp, shared, each.lanes, each.number)
            if shared.shadow is not None:
                self.offered = joined((self.offered, copied(each.warp, each.lanes)))
            for _ in each.lanes:
                self.arrive(1)

    def acquire(self, warp: Warp) -> None:
        """Lets a warp know what happened before the arrivals of all complete phases."""
        if self.released:
            warp.known = joined((warp.known, self.released))
