# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The state of global and shared memory: the bytes, who has accessed them, and which clocks were released there; and
the costs of accesses: wavefronts of shared memory, sectors of global memory (`base.spaces`).
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ....base.errors import Code
from ....base.spaces import Sharer
from ....base.spaces import Space as MemorySpace
from ....base.spaces import sectors as sectors_of
from ....base.spaces import wavefronts as wavefronts_of
from ....base.target import BANK_BYTES, BANKS, SECTOR_BYTES, WARP
from ...engine import NumPyArray
from ..ordering.races import RaceShadow
from ..warp import Warp
from .arena import Access, Arena, Bytes

if TYPE_CHECKING:
    from ..ordering.outdated import Outdated
    from ..ordering.releases import Releases
    from .journal import Journal


def wavefronts(addresses: NumPyArray, lanes: NumPyArray, width: int) -> tuple[int, int]:
    """Wavefronts of an access of `width` bytes by `lanes` at byte `addresses`, and the least possible."""
    period = BANKS * BANK_BYTES  # moving all addresses by it changes no bank
    start = int(addresses[0]) // period * period
    return _wavefronts((addresses - start).tobytes(), lanes.astype(np.int64).tobytes(), width)


def count_matrix(access: Access, rows: NumPyArray, width: int) -> None:
    """Counts the access of an instruction on matrices to rows of `width` bytes at these addresses. Its threads share
    it; a wavefront serves a core matrix of eight rows.
    """
    total, least = wavefronts(rows, np.arange(len(rows)), width)
    access.requests += 1
    access.threads += len(rows)
    access.transactions += total
    access.minimum += least


@lru_cache(maxsize=4096)
def _wavefronts(addresses: bytes, lanes: bytes, width: int) -> tuple[int, int]:
    numbers = np.frombuffer(lanes, np.int64)
    if numbers[-1] >= WARP:
        return _sum(wavefronts(at, lane, width) for at, lane in _by_warp(addresses, numbers))
    at, lane = np.frombuffer(addresses, np.int64), np.frombuffer(lanes, np.int64)
    return wavefronts_of(at.tolist(), lane.tolist(), width)


def sectors(addresses: NumPyArray, width: int, lanes: NumPyArray | None = None) -> tuple[int, int]:
    """Sectors that an access of `width` bytes by `lanes` at byte `addresses` touches, and the least that the bytes can
    occupy; the sum over the warps of the `lanes`, where those are of several.
    """
    start = int(addresses[0]) // SECTOR_BYTES * SECTOR_BYTES
    return _sectors((addresses - start).tobytes(), b"" if lanes is None else lanes.tobytes(), width)


@lru_cache(maxsize=4096)
def _sectors(addresses: bytes, lanes: bytes, width: int) -> tuple[int, int]:
    numbers = np.frombuffer(lanes, np.int64)
    if len(numbers) and numbers[-1] >= WARP:
        return _sum(sectors(at, width) for at, _ in _by_warp(addresses, numbers))
    return sectors_of(np.frombuffer(addresses, np.int64).tolist(), width)


def _by_warp(addresses: bytes, lanes: NumPyArray) -> Iterator[tuple[NumPyArray, NumPyArray]]:
    """The addresses and the lanes of each warp, these counted in the warp."""
    borders = np.flatnonzero(np.diff(lanes // WARP)) + 1
    return zip(np.split(np.frombuffer(addresses, np.int64), borders), np.split(lanes % WARP, borders), strict=True)


def _sum(costs: Iterable[tuple[int, int]]) -> tuple[int, int]:
    parts = list(costs)
    return sum(count for count, _ in parts), sum(least for _, least in parts)


_CONSTANT_HINT = "load them without nc, which no barrier and no fence orders, or write them in another launch"


@dataclass(slots=True)
class SpaceState:
    """The bytes of a state space, from virtual address `base` on."""

    row: MemorySpace
    base: int
    races: bool
    arena: Arena = field(default_factory=Arena)
    shadow: RaceShadow | None = None
    released: "Releases | None" = None
    """The clocks that atomic writes have left here, if there was one."""
    swizzles: Bytes = field(default_factory=lambda: np.zeros(0, np.uint8))
    """The swizzle of the last TMA copy to each 16 bytes of shared memory, as its bits plus 1; 0 without a copy."""
    origins: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    """The place in global memory from which the last TMA copy has brought each 16 bytes of shared memory, or 0."""
    packings: NDArray[np.int8] = field(default_factory=lambda: np.zeros(0, np.int8))
    """How the last TMA copy to each 16 bytes of shared memory has left elements of 4 or 6 bits, or 0."""
    outdated: "Outdated | None" = None
    """The versions of places, where loads may find outdated ones."""
    journal: "Journal | None" = None
    """The observer of writes, if there is one."""
    name: str = field(init=False)
    """The name of the state space."""
    in_block: bool = field(init=False)
    """Whether each block has its own, in banks, and a cluster those of its blocks as windows."""

    def __post_init__(self) -> None:
        self.name = self.row.ptx
        match self.row.sharer:
            case Sharer.BLOCK | Sharer.CLUSTER:
                self.in_block = True
            case Sharer.GRID:
                self.in_block = False
            case Sharer.THREAD:
                raise ValueError("the memory of threads is a LocalSpace")

    def build(self, windows: int = 1, readers: int = 1) -> None:
        """Creates the bytes of the allocations in `arena`, in each of some windows. The race check keeps the reads of
        `readers` readers apart: of the warps of a block in shared memory, else of the blocks of a cluster.
        """
        self.arena.build(windows)
        if self.in_block:
            self.swizzles = np.zeros(windows * self.arena.span // 16, np.uint8)
            self.origins = np.zeros(len(self.swizzles), np.int64)
            self.packings = np.zeros(len(self.swizzles), np.int8)
        if self.races:
            self.shadow = RaceShadow(self.arena.data[1].size, readers, self.name, self.in_block)

    def private(self) -> tuple[Any, ...]:
        """All that the cluster which goes on has here, for `assume`."""
        arena = self.arena.data, self.arena.state
        return (*arena, self.shadow, self.released, self.swizzles, self.origins, self.packings)

    def assume(self, memory: tuple[Any, ...]) -> None:
        """Takes over the state of another cluster."""
        self.arena.data, self.arena.state, self.shadow, self.released, *notes = memory
        self.swizzles, self.origins, self.packings = notes

    def reset(self) -> None:
        """Makes all bytes undefined and forgets past accesses, as for a new block."""
        self.arena.reset()
        self.swizzles[:] = 0
        self.origins[:] = 0
        self.packings[:] = 0
        self.released = None
        if self.shadow is not None:
            self.shadow.reset()

    @property
    def releases(self) -> "Releases":
        """The clocks that atomic writes leave here."""
        if self.released is None:
            from ..ordering.releases import Releases

            self.released = Releases()
        return self.released

    def entries(self, row: int, width: int) -> bytes:
        """The last writes of the bytes of a row, as the race check keeps them."""
        if self.shadow is None or not self.shadow.written(np.array([row]), width).any():
            return b""
        return self.shadow.write_rows[width][row].tobytes()

    def offsets(self, at: NumPyArray) -> NumPyArray:
        """The bytes before some addresses."""
        return at - self.base

    def address(self, offset: int) -> int:
        """The address of the byte at an offset."""
        return self.base + offset

    def show_row(self, row: int, width: int, byte: int = 0) -> str:
        """The address of a byte in a row of `width` bytes, in words."""
        rank, offset = divmod(row * width + byte, self.arena.span)
        where = f" in the block of rank {rank}" if self.arena.data[1].size > self.arena.span else ""
        return f"{self.show(self.address(offset))}{where}"

    def show(self, address: int) -> str:
        """An address in words."""
        return f"{address:#x} ({self.arena.describe(address - self.base)})"


@dataclass(slots=True)
class Promises:
    """The bytes that a launch has loaded under the promise that nothing writes them while the kernel runs (PTX ISA,
    ld.global.nc), by the widths of the loads. A cache that no barrier and no fence keeps coherent may serve them.
    """

    rows: dict[int, NDArray[np.bool_]] = field(default_factory=dict[int, NDArray[np.bool_]])

    def read(self, space: SpaceState, warp: Warp, access: Access, rows: NumPyArray) -> None:
        """Such a load of rows. SimulationError (E3242) if the launch has written them."""
        assert space.shadow is not None
        written = space.shadow.written(rows, access.width)
        if written.any():
            self._refuse(space, warp, access, int(rows[written.argmax()]), int(written.argmax()), "reads", "wrote")
        if access.width not in self.rows:
            self.rows[access.width] = np.zeros(len(space.arena.data[access.width]), bool)
        self.rows[access.width][rows] = True

    def write(self, space: SpaceState, warp: Warp, access: Access, rows: NumPyArray) -> None:
        """A write of rows. SimulationError (E3242) if the launch has loaded some of them so."""
        for width, loaded in self.rows.items():
            first, last = rows * access.width // width, ((rows + 1) * access.width - 1) // width
            hit = loaded[first] | loaded[last]
            if hit.any():
                self._refuse(space, warp, access, int(rows[hit.argmax()]), int(hit.argmax()), "writes", "has read")

    def _refuse(self, space: SpaceState, warp: Warp, access: Access, row: int, index: int, does: str, did: str) -> None:
        if warp.launch.forgives(Code.SIM_CONSTANT, access.site):
            return
        text = f"{does} {space.show_row(row, access.width)}, which the launch {did}; one of the two is a load by nc"
        lane = int(warp.lane_numbers()[index])
        warp.fault(Code.SIM_CONSTANT, access.site, lane, text, _CONSTANT_HINT, (space.name, row * access.width))
