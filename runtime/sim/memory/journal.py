# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Who writes to global memory during a launch, and which values: for comparing two launches write by write."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ....base.errors import Code
from ....base.spaces import GMEM
from ...engine import NumPyArray
from ...errors import Dim3
from ..events import ScheduleObserver
from ..faults import SimulationError, Site
from ..reached import Reached
from ..warp import Cluster, Warp
from .arena import READY, Arena

if TYPE_CHECKING:
    from ..ordering.communication import Communication
    from ..tcgen05.order import Use

MAX_BYTES = 1 << 28
"""The most bytes that a journal keeps of the values that a launch writes."""
MAX_SIGHTINGS = 1 << 16
"""The most accesses to a byte that a journal keeps."""


@dataclass(frozen=True, slots=True)
class Sighting:
    """An access of a thread to the byte that is watched: the operation, the thread, and whether it writes."""

    site: Site
    block: Dim3
    thread: Dim3
    warp: int
    writes: bool
    cluster: int

    def __str__(self) -> str:
        block, thread = (f"({x},{y},{z})" for x, y, z in (self.block, self.thread))
        return f"block {block}, thread {thread}"


class SeenEnoughError(Exception):
    """Ends a launch whose observer has seen all that it was asked for."""


@dataclass(slots=True)
class Journal:
    """An observer of a launch. `watched` is a byte, of an argument's storage or by the name of its state space and its
    offset there; `sightings` are the accesses to it. With `keeps_values` every value that is written to global memory
    is kept, in order.
    """

    watched: tuple[NumPyArray | str, int] | None = None
    keeps_values: bool = False
    within: Dim3 | None = None
    """The block with whose cluster the launch may end, as later accesses do not count; None for all of it."""
    is_enough: Callable[[Sequence[Sighting]], bool] | None = None
    """Whether no more accesses need be seen: asked after each; SeenEnoughError then ends the launch."""
    sightings: list[Sighting] = field(default_factory=list[Sighting])
    remarks: dict[Site, tuple[Code, str]] = field(default_factory=dict[Site, tuple[Code, str]])
    """The first remark about an operation, with the code of the fault that it comes near."""
    assumed: dict[Site, str] = field(default_factory=dict[Site, str])
    """The first thing that the launch takes for granted at an operation, where PTX leaves it open, in words."""
    outdated: dict[Site, str] = field(default_factory=dict[Site, str])
    """The accesses that have found outdated values, each with its place."""
    communication: "Communication | None" = None
    """The order of the atomic accesses, if some may have found outdated values."""
    wider: set[Site] = field(default_factory=set[Site])
    """Operations with forgiven races with threads of other warps."""
    reached: Reached | None = None
    """The parts of the kernel that the launch has executed, if it came to its end."""
    _space: str = ""
    _offset: int = -1
    _offsets: list[NDArray[np.int64]] = field(default_factory=list[NDArray[np.int64]])
    _values: list[NDArray[np.uint8]] = field(default_factory=list[NDArray[np.uint8]])
    _bytes: int = 0
    _arena: Arena | None = None
    _places: list[tuple[NumPyArray, int]] = field(default_factory=list[tuple[NumPyArray, int]])

    @property
    def is_watching(self) -> bool:
        """Whether the order of the accesses counts."""
        return self.watched is not None or self.keeps_values

    def is_done(self, cluster: Cluster) -> bool:
        """Whether nothing counts that comes after the end of a cluster."""
        return self.within is not None and any(warp.block.coordinate == self.within for warp in cluster.ended)

    @property
    def schedule(self) -> ScheduleObserver | None:
        """The observer itself, if it keeps when warps run and wait."""
        return None

    @property
    def writer(self) -> Sighting | None:
        """The last write to the byte that is watched."""
        return next((sighting for sighting in reversed(self.sightings) if sighting.writes), None)

    def begin(self, arena: Arena, places: list[tuple[NumPyArray, int]], shared: Arena) -> None:
        """Starts anew. `places` are the storages of the arguments with their offsets in the `arena` of global memory;
        `shared` is that of shared memory.
        """
        self._bytes, self._arena, self._places = 0, arena, places
        for kept in (self.sightings, self._offsets, self._values, self.remarks, self.wider, self.outdated):
            kept.clear()
        self.assumed.clear()
        self.communication = None
        if self.watched is not None:
            place, byte = self.watched
            if isinstance(place, str):
                self._space, self._offset = place, byte
            else:
                self._space, self._offset = GMEM.ptx, self.place(place) + byte

    def see(self, space: str, warp: Warp, site: Site, rows: NumPyArray, width: int, *, writes: bool) -> None:
        """Sees that the active lanes access one row of `width` bytes each, now or by an operation that they start."""
        if space != self._space or len(self.sightings) >= MAX_SIGHTINGS:
            return
        number = warp.block.cluster.number
        for index in np.flatnonzero(rows == self._offset // width).tolist():
            thread = warp.block.thread(warp.first_thread + int(warp.lane_numbers()[index]))
            self.sightings.append(Sighting(site, warp.block.coordinate, thread, warp.index, writes, number))
            if self.is_enough is not None and self.is_enough(self.sightings):
                raise SeenEnoughError

    def holds(self, warp: Warp, first: int, count: int, site: Site) -> None:
        """The block of a warp has allocated columns of tensor memory."""

    def frees(self, warp: Warp, first: int) -> None:
        """The block of a warp has freed the columns from `first` on."""

    def uses(self, use: "Use") -> None:
        """A use of cells of tensor memory begins."""

    def remark(self, site: Site, text: str, code: Code = Code.SIM_RACE) -> None:
        """Keeps the first remark of an operation."""
        self.remarks.setdefault(site, (code, text))

    def assume(self, site: Site, text: str) -> None:
        """Keeps the first thing that the launch takes for granted at an operation."""
        self.assumed.setdefault(site, text)

    def write(self, rows: NumPyArray, width: int, content: NDArray[np.uint8]) -> None:
        """Keeps the bytes (rows, width) that are now in memory. SimulationError (E3211) beyond `MAX_BYTES`."""
        if not self.keeps_values:
            return
        self._offsets.append((rows[:, None] * width + np.arange(width)).reshape(-1))
        self._values.append(np.array(content, np.uint8).reshape(-1))
        self._bytes += 9 * self._values[-1].size
        if self._bytes > MAX_BYTES:
            message = f"the launch writes so often that its values take more than {MAX_BYTES >> 20} MiB"
            raise SimulationError(Code.SIM_MEMORY, message, "compare a smaller launch, or its results only")

    def unwritten(self, storage: NumPyArray) -> NDArray[np.bool_]:
        """Which bytes of an argument's storage have no value after the launch."""
        assert self._arena is not None, "the launch has begun"
        start = self.place(storage)
        return self._arena.state[1][start : start + storage.nbytes, 0] != READY

    def place(self, storage: NumPyArray) -> int:
        """The offset of an argument's storage in global memory."""
        return next(offset for placed, offset in self._places if placed is storage)

    def history(self) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
        """The offsets of all bytes that were written, in ascending order, and the values of each byte in the order
        of time. Equal for two launches that write the same, in whatever widths and order of bytes.
        """
        if not self._offsets:
            return np.zeros(0, np.int64), np.zeros(0, np.uint8)
        offsets, values = np.concatenate(self._offsets), np.concatenate(self._values)
        order = np.argsort(offsets, kind="stable")
        return offsets[order], values[order]
