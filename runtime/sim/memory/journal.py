# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Who writes to global memory during a launch, and which values: for comparing two launches write by write."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ....base.errors import Code
from ...errors import Dim3
from ..faults import SimulationError, Site

if TYPE_CHECKING:
    from ..warp import Warp

MAX_BYTES = 1 << 28
"""The most bytes that a journal keeps of the values that a launch writes."""


@dataclass(frozen=True, slots=True)
class Writer:
    """The operation that wrote a byte last, and its thread."""

    site: Site
    block: Dim3
    thread: Dim3

    def __str__(self) -> str:
        block, thread = (f"({x},{y},{z})" for x, y, z in (self.block, self.thread))
        return f"block {block}, thread {thread}"


@dataclass(slots=True)
class Journal:
    """An observer of a launch. `watched` is a byte of an argument's storage, whose last `writer` it finds; with
    `keeps_values` it keeps every value that is written to global memory, in order.
    """

    watched: tuple[NDArray[Any], int] | None = None
    keeps_values: bool = False
    writer: Writer | None = None
    _offset: int = -1
    _offsets: list[NDArray[np.int64]] = field(default_factory=list[NDArray[np.int64]])
    _values: list[NDArray[np.uint8]] = field(default_factory=list[NDArray[np.uint8]])
    _bytes: int = 0

    def begin(self, places: list[tuple[NDArray[Any], int]]) -> None:
        """Starts anew. `places` are the storages of the arguments with their offsets in global memory."""
        self.writer, self._bytes = None, 0
        self._offsets.clear()
        self._values.clear()
        if self.watched is not None:
            storage, byte = self.watched
            self._offset = next(offset for placed, offset in places if placed is storage) + byte

    def claim(self, warp: "Warp", site: Site, rows: NDArray[Any], width: int) -> None:
        """Sees that the active lanes write, now or when an operation completes, one row of `width` bytes each."""
        if self._offset < 0:
            return
        hits = np.flatnonzero(rows == self._offset // width)
        if hits.size:
            lane = int(warp.lane_numbers()[hits[-1]])
            self.writer = Writer(site, warp.block.coordinate, warp.block.thread(warp.first_thread + lane))

    def write(self, rows: NDArray[Any], width: int, content: NDArray[np.uint8]) -> None:
        """Keeps the bytes (rows, width) that are now in memory. SimulationError (E3211) beyond `MAX_BYTES`."""
        if not self.keeps_values:
            return
        self._offsets.append((rows[:, None] * width + np.arange(width)).reshape(-1))
        self._values.append(np.array(content, np.uint8).reshape(-1))
        self._bytes += 9 * self._values[-1].size
        if self._bytes > MAX_BYTES:
            message = f"the launch writes so often that its values take more than {MAX_BYTES >> 20} MiB"
            raise SimulationError(Code.SIM_MEMORY, message, "compare a smaller launch, or its results only")

    def history(self) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
        """The offsets of all bytes that were written, in ascending order, and their values, of each byte in the order
        of time. Equal for two launches that write the same, in whatever widths and order of bytes.
        """
        if not self._offsets:
            return np.zeros(0, np.int64), np.zeros(0, np.uint8)
        offsets, values = np.concatenate(self._offsets), np.concatenate(self._values)
        order = np.argsort(offsets, kind="stable")
        return offsets[order], values[order]
