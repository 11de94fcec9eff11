# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reads by copies that nothing orders, each kept: one entry of a table cannot stand for several agents that are not
threads, and a write that knows them all is ordered after them.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...engine import NumPyArray
from .clocks import AGENT, Conflict, Entries

if TYPE_CHECKING:
    from ..warp import Warp


@dataclass(frozen=True)
class ReadsApart:
    """Entries of earlier reads beside the last one in a table, by their byte. `unordered` says which entries are not
    ordered before the access that the active lanes make now, a row for each; None if all are (`RaceShadow`).
    """

    unordered: "Callable[[Warp, Entries, bool, NDArray[np.bool_] | None], NDArray[np.bool_] | None]"
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
                entries, before = np.array([reads]), warp.mask_state()
                warp.spread(int(warp.lane_numbers()[index]), 1)
                bad = self.unordered(warp, entries, False, np.ones(entries.shape, bool))
                warp.restore(before)
                if bad is not None:
                    entry = int(entries[bad][0])
                    return Conflict(index, place * granule, entry & AGENT, entry >> 32, False, False)
        return None
