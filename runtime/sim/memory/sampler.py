# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which addresses the lanes of a warp access together, operation by operation: for the cost of another layout."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ....base.spaces import GMEM, SMEM
from ...engine import NumPyArray
from ..faults import Site
from .arena import Arena
from .journal import Journal
from .space_state import wavefronts

if TYPE_CHECKING:
    from ..warp import Warp

MAX_PATTERNS = 1024
"""The most different accesses that are kept of an operation."""


@dataclass(slots=True)
class Pattern:
    """An access of a warp that occurs `count` times: the offset of each lane from the begin of the memory, of shared
    memory that of the block.
    """

    offsets: NDArray[np.int64]
    lanes: NDArray[np.int64]
    count: int = 0


@dataclass(slots=True)
class Sampled:
    """The accesses of an operation to a memory, `width` bytes a lane. `patterns` are the different ones to shared
    memory, and the first to global memory; `touched` the bytes of global memory that they concern.
    """

    width: int
    writes: bool
    patterns: dict[tuple[bytes, bytes], Pattern] = field(default_factory=dict[tuple[bytes, bytes], Pattern])
    touched: NDArray[np.bool_] | None = None

    def worst(self) -> Pattern:
        """The access that takes the most wavefronts beyond the least."""

        def excess(pattern: Pattern) -> int:
            total, least = wavefronts(pattern.offsets, pattern.lanes, self.width)
            return total - least

        return max(self.patterns.values(), key=excess)


@dataclass(slots=True)
class Sampler(Journal):
    """An observer of a launch that keeps its accesses to memory by operation and state space."""

    sampled: dict[tuple[Site, str], Sampled] = field(default_factory=dict[tuple[Site, str], Sampled])
    shared_start: int = 0
    """The offset of the block's memory in the arena of shared memory."""
    _sizes: dict[str, int] = field(default_factory=dict[str, int])

    @property
    def is_watching(self) -> bool:
        """Accesses are recorded warp by warp."""
        return True

    def begin(self, arena: Arena, places: list[tuple[NumPyArray, int]], shared: Arena) -> None:
        Journal.begin(self, arena, places, shared)
        self.sampled.clear()
        self._sizes = {GMEM.ptx: arena.span, SMEM.ptx: shared.span}
        self.shared_start = shared.allocations[0].start if shared.allocations else 0

    def see(self, space: str, warp: "Warp", site: Site, rows: NumPyArray, width: int, *, writes: bool) -> None:
        if space not in self._sizes:
            return
        sampled = self.sampled.get((site, space))
        if sampled is None:
            sampled = self.sampled[site, space] = Sampled(width, writes)
        if space == GMEM.ptx:
            if sampled.touched is None:
                sampled.touched = np.zeros(self._sizes[space], bool)
            sampled.touched.reshape(-1, width)[rows] = True
            if sampled.patterns:
                return
        offsets = rows.astype(np.int64) * width % self._sizes[space]
        offsets -= self.shared_start if space == SMEM.ptx else 0
        lanes = warp.lane_numbers().astype(np.int64)
        if warp.is_spread or len(lanes) != len(offsets):  # rows of a bulk copy, or those that a multiplication reads
            return
        key = offsets.tobytes(), lanes.tobytes()
        pattern = sampled.patterns.get(key)
        if pattern is None:
            if len(sampled.patterns) >= MAX_PATTERNS:
                return
            pattern = sampled.patterns[key] = Pattern(offsets, lanes)
        pattern.count += 1

    def distinct(self, site: Site) -> int:
        """The bytes of global memory that an operation accesses, each counted once."""
        sampled = self.sampled.get((site, GMEM.ptx))
        return 0 if sampled is None or sampled.touched is None else int(sampled.touched.sum())
