# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Accesses that nothing orders, beside the last one of each granule in the tables of `RaceShadow`: writes that atomic
ones have covered, and reads by copies. One entry of a table cannot stand for several agents that are not threads, and a
write that knows them all is ordered after them.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ...engine import NumPyArray
from .clocks import AGENT, ATOMIC, MORE, SEVERAL, Conflict, Entries
from .knowledge import horizon_of

if TYPE_CHECKING:
    from ..warp import Warp


Unordered: TypeAlias = "Callable[[Warp, Entries, bool, NDArray[np.bool_] | None], NDArray[np.bool_] | None]"
"""Says which entries are not ordered before the access that the active lanes make now, a row for each; None if all are
(`RaceShadow`).
"""


@dataclass(frozen=True)
class CoveredWrites:
    """The times of writes that later atomic ones have covered, by their byte, and by agent and whether they are atomic.
    `forgets` is that of the `RaceShadow`.
    """

    unordered: Unordered
    forgets: bool
    writes: dict[int, dict[int, int]] = field(default_factory=dict[int, dict[int, int]])

    def refine(self, parts: int, width: int) -> None:
        """Divides granules into parts of `width` bytes."""
        for byte, writes in list(self.writes.items()):
            self.writes.update({byte + part * width: writes for part in range(parts)})

    def cover(self, warp: "Warp", rows: NumPyArray, entries: Entries, reads: bool, granule: int) -> NDArray[np.bool_]:
        """Keeps the writes that are covered by atomic ones now: plain ones, and atomic ones that nothing orders, unless
        the operation `reads` these; which entries have such.
        """
        more, atomic = (entries & MORE) != 0, (entries & ATOMIC) != 0
        covered = (entries != 0) & ~atomic
        other = atomic & ((entries & AGENT) != warp.active_agents()[:, None]) & (not reads)
        unordered = None
        if other.any():
            unordered = self.unordered(warp, np.where(other, entries & ~SEVERAL, 0), False, None)
        if unordered is not None:
            covered |= unordered
        for index, place in np.argwhere(covered).tolist():
            byte = granule * (int(rows[index]) * entries.shape[1] + place)
            entry = int(entries[index, place])
            others = self.writes.get(byte, {}) if more[index, place] else {}
            self.writes[byte] = {**others, entry & (AGENT | ATOMIC): entry >> 32}
        return more | covered

    def first_unordered(
        self, warp: "Warp", rows: NumPyArray, entries: Entries, atomic: bool, granule: int
    ) -> Conflict | None:
        """The first conflict of the active lanes' accesses with a covered write."""
        horizon, start = horizon_of(warp), 0 if self.forgets else warp.block.cluster.start
        if not self.forgets and len(warp.launch.begun) > 1:
            horizon = start  # another cluster may have written since
        known: set[int] = set()
        for index, place in np.argwhere((entries & MORE) != 0).tolist():
            byte = granule * (int(rows[index]) * entries.shape[1] + place)
            if byte in known:
                continue
            open = [
                time << 32 | agent & (AGENT | ATOMIC)
                for agent, time in self.writes[byte].items()
                if not (atomic and agent & ATOMIC) and not start <= time < horizon
            ]
            entry = _first_open(self.unordered, warp, index, open)
            if entry is not None:
                is_atomic = bool(entry & ATOMIC)
                return Conflict(index, place * granule, entry & AGENT, entry >> 32, True, is_atomic)
            if not open:
                known.add(byte)
        return None


@dataclass(frozen=True)
class ConcurrentReads:
    """Entries of earlier reads by copies, by their byte."""

    unordered: Unordered
    reads: dict[int, list[int]] = field(default_factory=dict[int, list[int]])

    def refine(self, parts: int, width: int) -> None:
        """Divides granules into parts of `width` bytes."""
        for byte, reads in list(self.reads.items()):
            self.reads.update({byte + part * width: list(reads) for part in range(parts)})

    def keep(
        self, warp: "Warp", rows: NumPyArray, earlier: Entries, concurrent: NDArray[np.bool_] | None, granule: int
    ) -> None:
        """Keeps the `earlier` reads of rows that are `concurrent` with those that the active lanes make now, and
        forgets the kept ones that are ordered before these.
        """
        count = earlier.shape[1]
        for index, row in enumerate(rows.tolist()):
            for place in range(count):
                byte = granule * (row * count + place)
                reads: list[int] = self.reads.pop(byte, [])
                if reads:
                    bad = self.unordered(warp, np.array([reads] * len(rows)), False, None)
                    reads = [] if bad is None else np.array(reads)[bad[index]].tolist()
                if concurrent is not None and concurrent[index, place]:
                    reads.append(int(earlier[index, place]))
                if reads:
                    self.reads[byte] = reads

    def first_unordered(self, warp: "Warp", rows: NumPyArray, width: int, granule: int) -> Conflict | None:
        """The first conflict of the active lanes' writes with a read that is kept."""
        count = width // granule
        for index, row in enumerate(rows.tolist()) if self.reads else ():
            for place in range(count):
                if (reads := self.reads.get(granule * (row * count + place))) is None:
                    continue
                entry = _first_open(self.unordered, warp, index, reads, over=True)
                if entry is not None:
                    return Conflict(index, place * granule, entry & AGENT, entry >> 32, False, False)
        return None


def _first_open(unordered: Unordered, warp: "Warp", index: int, entries: list[int], over: bool = False) -> int | None:
    """The first of some entries that are not ordered before the access of the active lane of this index; those that are
    `over` need not be visible.
    """
    if not entries:
        return None
    row, before = np.array([entries]), warp.mask_state()
    warp.spread(int(warp.lane_numbers()[index]), 1)
    bad = unordered(warp, row, False, np.ones(row.shape, bool) if over else None)
    warp.restore(before)
    return None if bad is None else int(row[bad][0])
