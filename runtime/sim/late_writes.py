# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reads of unwritten bytes that are written later: the commonest mistake, a barrier that is missing."""

from collections.abc import Sequence

from ...base.spaces import SMEM
from .faults import SimulationError
from .memory.journal import Journal, Sighting


def sightings_of(journal: Journal, fault: SimulationError) -> list[Sighting]:
    """The accesses to the byte of a fault, in their order; in shared memory those of its cluster."""
    sightings = journal.sightings
    if fault.at is not None and fault.at[0] == SMEM.ptx and fault.block is not None:
        mine = {sighting.cluster for sighting in sightings if sighting.block == fault.block}
        sightings = [sighting for sighting in sightings if sighting.cluster in mine]
    return sightings


def late_write(sightings: Sequence[Sighting], fault: SimulationError) -> tuple[Sighting, str] | None:
    """The first write of a byte behind the read of it that a fault is of, and a hint; None if nothing writes it."""
    reads = [index for index, sighting in enumerate(sightings) if sighting.site == fault.origin and not sighting.writes]
    first_read = reads[0] if reads else 0
    later = next((sighting for sighting in sightings[first_read:] if sighting.writes), None)
    if later is None:
        return None
    order = _order(later, sightings[first_read])
    known = fault.origin is not None and fault.origin.file and later.site.file
    lines = f", after {later.site.line_name} and before {fault.origin.line_name}" if fault.origin and known else ""
    return later, f"the write comes too late: put {order} between it and the read{lines}"


def _order(write: Sighting, read: Sighting) -> str:
    """The means by which a write comes before a read."""
    if write.block != read.block:
        return "a release and an acquire, or another launch,"
    return "ptx.bar.warp.sync" if write.warp == read.warp else "a barrier of the block"
