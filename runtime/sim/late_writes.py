# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reads of unwritten bytes that are written later: the commonest mistake, a barrier that is missing; and of bytes next
to others that are written, where a predicate leaves some out.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...base.spaces import SMEM, TMEM
from ..engine import NumPyArray
from .faults import SimulationError, Site
from .memory.arena import Arena
from .memory.journal import Journal, Sighting
from .warp import Warp

_NEAR = 1024
"""The most bytes between a byte and others that count as next to it."""


@dataclass(slots=True)
class Neighbours(Journal):
    """An observer of a launch that finds the operation that writes the bytes nearest to the one that is watched."""

    nearest: Site | None = None
    distance: int = _NEAR + 1
    _homes: tuple[range, ...] = ()
    """The bytes of the allocations of the memory."""
    _span: int = 1

    def begin(self, arena: Arena, places: list[tuple[NumPyArray, int]], shared: Arena) -> None:
        """Starts anew."""
        Journal.begin(self, arena, places, shared)
        memory = shared if self._space == SMEM.ptx else arena
        self._span = memory.span
        self._homes = tuple(range(part.start, part.start + part.size) for part in (*memory.parts, *memory.allocations))

    def see(self, space: str, warp: Warp, site: Site, rows: NumPyArray, width: int, *, writes: bool) -> None:
        """Sees that the active lanes access one row of `width` bytes each."""
        if not writes or space != self._space or not len(rows):
            return
        bytes = np.asarray(rows, np.int64) * width
        home = next((home for home in self._homes if self._offset % self._span in home), range(0))
        near = (bytes % self._span >= home.start) & (bytes % self._span < home.stop)
        distance = int(np.abs(bytes[near] - self._offset).min(initial=_NEAR + 1))
        if distance < self.distance:
            self.nearest, self.distance = site, distance


def sightings_of(journal: Journal, fault: SimulationError) -> list[Sighting]:
    """The accesses to the byte of a fault, in their order; in shared memory those of its cluster."""
    sightings = journal.sightings
    if fault.at is not None and fault.at[0] == SMEM.ptx and fault.block is not None:
        mine = {sighting.cluster for sighting in sightings if sighting.block == fault.block}
        sightings = [sighting for sighting in sightings if sighting.cluster in mine]
    return sightings


def late_write(sightings: Sequence[Sighting], fault: SimulationError) -> tuple[Sighting, str] | None:
    """The first write of a byte after the faulty read of it, and a hint; None if nothing writes it."""
    reads = [index for index, sighting in enumerate(sightings) if sighting.site == fault.origin and not sighting.writes]
    first_read = reads[0] if reads else 0
    later = next((sighting for sighting in sightings[first_read:] if sighting.writes), None)
    if later is None:
        return None
    order = _order(later, sightings[first_read], fault)
    known = fault.origin is not None and fault.origin.file and later.site.file
    lines = f", after {later.site.line_name} and before {fault.origin.line_name}" if fault.origin and known else ""
    return later, f"the write comes too late: put {order} between it and the read{lines}"


def _order(write: Sighting, read: Sighting, fault: SimulationError) -> str:
    """The means by which a write comes before a read."""
    if fault.at is not None and fault.at[0] == TMEM.ptx:
        is_store = write.site.op.endswith("tcgen05.st")
        return "ptx.tcgen05.wait, and a barrier," if is_store else "ptx.tcgen05.commit, and a wait at its mbarrier,"
    if write.block != read.block:
        return "a release and an acquire, or another launch,"
    return "ptx.bar.warp.sync" if write.warp == read.warp else "a barrier of the block"
