# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loads that promise that nothing writes their data while the kernel runs (PTX ISA, ld.global.nc): a cache that no
barrier and no fence keeps coherent may serve them.
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ....base.errors import Code
from ..warp import Warp

if TYPE_CHECKING:
    from .spaces import Access, Space

_HINT = "load them without nc, which no barrier and no fence orders, or write them in another launch"


@dataclass(slots=True)
class Promises:
    """The bytes that a launch has loaded so, by the widths of the loads."""

    rows: dict[int, NDArray[np.bool_]] = field(default_factory=dict[int, NDArray[np.bool_]])

    def read(self, space: "Space", warp: Warp, access: "Access", rows: NDArray[Any]) -> None:
        """Such a load of rows. SimulationError (E3242) if the launch has written them."""
        assert space.shadow is not None
        written = space.shadow.written(rows, access.width)
        if written.any():
            self._refuse(space, warp, access, int(rows[written.argmax()]), int(written.argmax()), "reads", "wrote")
        if access.width not in self.rows:
            self.rows[access.width] = np.zeros(len(space.arena.data[access.width]), bool)
        self.rows[access.width][rows] = True

    def write(self, space: "Space", warp: Warp, access: "Access", rows: NDArray[Any]) -> None:
        """A write of rows. SimulationError (E3242) if the launch has loaded some of them so."""
        for width, loaded in self.rows.items():
            first, last = rows * access.width // width, ((rows + 1) * access.width - 1) // width
            hit = loaded[first] | loaded[last]
            if hit.any():
                self._refuse(space, warp, access, int(rows[hit.argmax()]), int(hit.argmax()), "writes", "has read")

    def _refuse(self, space: "Space", warp: Warp, access: "Access", row: int, index: int, does: str, did: str) -> None:
        if warp.launch.forgives(Code.SIM_CONSTANT, access.site):
            return
        text = f"{does} {space.show_row(row, access.width)}, which the launch {did}; one of the two is a load by nc"
        lane = int(warp.lane_numbers()[index])
        warp.fault(Code.SIM_CONSTANT, access.site, lane, text, _HINT, (space.name, row * access.width))
