# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The local state space: each thread's fragments, which a GPU keeps in registers."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ....base.errors import Code
from ...engine import NumPyArray
from ..faults import Site
from ..ordering.asynchronous import InFlight, writers
from ..values import Value, varies
from ..warp import Warp
from .arena import ABSENT, IN_FLIGHT, READY, UNWRITTEN, WORDS, Allocation, Arena
from .provenance import HINT

Bytes = NDArray[np.uint8]
TOUCHED = 1
"""The mark of registers that a thread has accessed."""


@dataclass(frozen=True, slots=True, eq=False)
class Words:
    """Registers in all lanes of a warp, as bytes (lanes, bytes) that can be changed: contents, states, and marks of the
    accesses since the last fence of warpgroups.
    """

    data: Bytes
    state: Bytes
    touched: Bytes


@dataclass(slots=True)
class LocalSpace:
    """A frame of bytes for each thread of the cluster; an address is an offset into the executing thread's
    frame.

    `load` and `store` raise SimulationError for an access that is misaligned (E3203), outside every allocation (E3202),
    of undefined bytes (E3204) or of registers that an asynchronous operation has yet to write (E3206).
    """

    frame: Arena = field(default_factory=Arena)
    """Where the allocations lie in a frame; its bytes are not used."""
    has_warpgroups: bool = False
    """Whether warpgroups multiply, so that accesses to registers are noted."""
    _data: Bytes = field(default_factory=lambda: np.zeros((0, 0), np.uint8))
    _state: Bytes = field(default_factory=lambda: np.zeros((0, 0), np.uint8))
    _touched: Bytes | None = None
    """Which bytes a thread has accessed since its last fence of warpgroups: 0, TOUCHED, or the number of the shape of
    the multiplication that accumulated there.
    """

    def build(self, threads: int) -> None:
        """Creates the frames of a number of threads."""
        size = -(-self.frame.size // 16) * 16
        self._data = np.zeros((threads, size), np.uint8)
        self._state = np.full((threads, size), ABSENT, np.uint8)
        self._touched = np.full((threads, size), TOUCHED, np.uint8) if self.has_warpgroups else None

    def private(self) -> tuple[Bytes, Bytes, Bytes | None]:
        """The frames of the cluster that goes on, for `assume`."""
        return self._data, self._state, self._touched

    def assume(self, memory: tuple[Bytes, Bytes, Bytes | None]) -> None:
        """Takes the frames of another cluster."""
        self._data, self._state, self._touched = memory

    def contents(self) -> tuple[Bytes, Bytes]:
        """The bytes of all frames, and their states."""
        return self._data, self._state

    def define(self, warp: Warp, allocation: Allocation) -> None:
        """Begins the life of an allocation in the active lanes: its bytes become undefined."""
        start, end = allocation.start, allocation.start + allocation.size
        self._state[self._threads(warp), start:end] = UNWRITTEN
        if self._touched is not None:
            self._touched[self._threads(warp), start:end] = TOUCHED
        warp.defined = {span for span in warp.defined if not start <= span[0] < end}

    def load(self, warp: Warp, site: Site, address: Value, width: int) -> Bytes:
        """The `width` bytes at `address` in each active lane, as an array (active, width)."""
        if self._touched is not None:
            self._touch(warp, site, address, width)
        if type(address) is int and self._is_defined(warp, address, width):
            content = self._data[self._threads(warp), address : address + width]
            return content.copy() if warp.active_lanes is None else content
        rows = self._check(warp, site, address, width)
        content = self._data.reshape(-1, width)[rows]
        states = self._state.reshape(-1, width)[rows]
        if not (states == READY).all():
            lane, byte = np.argwhere(states != READY)[0].tolist()
            where = self.frame.describe(int(warp.select(address)[lane]) + byte)
            content[states != READY] = warp.undefined(site, lane, where)
        return content

    def load_all(self, warp: Warp, site: Site, addresses: NDArray[np.int64], width: int) -> Bytes:
        """The `width` bytes at each of some addresses in each active lane: an array (active, bytes). `addresses` is the
        same object for all accesses to a place.
        """
        if not self._are_defined(warp, addresses, width):
            return np.concatenate([self.load(warp, site, at, width) for at in addresses.tolist()], axis=1)
        words = self._data[self._threads(warp)].view(WORDS[width])
        return words.take(addresses // width, axis=1).view(np.uint8)

    def store_all(self, warp: Warp, site: Site, addresses: NDArray[np.int64], content: Bytes) -> None:
        """Writes an array (active, bytes) of bytes to the addresses in each active lane, as many to each."""
        width = content.shape[1] // len(addresses)
        if warp.active_lanes is not None or not self._are_defined(warp, addresses, width, storing=True):
            for number, at in enumerate(addresses.tolist()):
                self.store(warp, site, at, content[:, number * width : (number + 1) * width])
            return
        words = self._data[self._threads(warp)].view(WORDS[width])
        words[:, addresses // width] = np.ascontiguousarray(content).view(WORDS[width])

    def _are_defined(self, warp: Warp, addresses: NDArray[np.int64], width: int, storing: bool = False) -> bool:
        """As `_is_defined` for each of the addresses, where accesses need not be noted."""
        if self._touched is not None:
            return False
        key = int(addresses[0]), id(addresses)
        if key not in warp.defined:
            if not all([self._is_defined(warp, at, width, storing) for at in addresses.tolist()]):
                return False
            warp.defined.add(key)
        return True

    def store(self, warp: Warp, site: Site, address: Value, content: Bytes) -> None:
        """Writes an array (active, width) of bytes at `address` in each active lane."""
        width = content.shape[1]
        if self._touched is not None:
            self._touch(warp, site, address, width, writes=True)
        if type(address) is int and self._is_defined(warp, address, width, storing=warp.active_lanes is None):
            self._data[self._threads(warp), address : address + width] = content
            return
        rows = self._check(warp, site, address, width)
        self._data.reshape(-1, width)[rows] = content
        self._state.reshape(-1, width)[rows] = READY

    def claim(self, warp: Warp, site: Site, address: Value, width: int) -> NDArray[np.int64]:
        """Checks a write at `address`; the rows that it will change."""
        return self._check(warp, site, address, width)

    def hold(self, warp: Warp, rows: NumPyArray, width: int) -> None:
        """Puts rows of a warp's fragments in flight; a claim has checked the write."""
        self._state.reshape(-1, width)[rows] = IN_FLIGHT
        warp.defined.clear()

    def land(self, rows: NumPyArray, width: int, content: Bytes, time: int, agents: NumPyArray) -> None:
        """Ends the flight of rows with these bytes. Nobody else can reach them, so the time does not count."""
        self._data.reshape(-1, width)[rows] = content
        self._state.reshape(-1, width)[rows] = READY

    @property
    def size(self) -> int:
        """The bytes of a thread's frame."""
        return self._data.shape[1]

    def words(self, warp: Warp, site: Site, address: int, size: int) -> Words:
        """The registers of 4 bytes at an address in all lanes of a warp. The faults of `load`, but for undefined bytes
        and such in flight.
        """
        threads, span = self._threads(warp), slice(address, address + size)
        for end in (address, address + size - 4):
            if end % 4 or not 0 <= end <= self._data.shape[1] - 4:
                self._check(warp, site, end, 4)
        absent = (self._state[threads, span] == ABSENT).any(axis=0)
        if absent.any():
            self._check(warp, site, address + int(absent.argmax()) // 4 * 4, 4)
        assert self._touched is not None
        return Words(self._data[threads, span], self._state[threads, span], self._touched[threads, span])

    def fence(self, warp: Warp) -> None:
        """A fence of a warpgroup's threads: orders their earlier accesses before later ones."""
        assert self._touched is not None
        self._touched[self._threads(warp)] = 0

    def _touch(self, warp: Warp, site: Site, address: Value, width: int, writes: bool = False) -> None:
        """Notes an access of the active lanes. A fault for writes of registers that a multiplication reads."""
        assert self._touched is not None
        if type(address) is int:
            if address >= 0:
                self._touched[self._threads(warp), address : address + width] = TOUCHED
            first = last = address
        else:
            at = warp.select(address)
            inside = np.clip(at[:, None] + np.arange(width), 0, self._touched.shape[1] - 1)
            self._touched[(warp.first_index + warp.lane_numbers())[:, None], inside] = TOUCHED
            first, last = int(at.min()), int(at.max())
        for part in warp.state(InFlight).multiplications if writes else ():
            if part.a is not None and part.a[0] < last + width and first < part.a[0] + part.a[1]:
                at = warp.select(address)
                hit = (at < part.a[0] + part.a[1]) & (at + width > part.a[0])
                warp.fault_where(
                    _in_lanes(warp, hit), Code.SIM_IN_FLIGHT, site,
                    f"writes registers of A, {self.frame.describe(first)}, while {part.describe(0)} still reads them",
                    part.cure,
                )  # fmt: skip

    def _is_defined(self, warp: Warp, address: int, width: int, storing: bool = False) -> bool:
        """Whether the bytes at an address are aligned and written in all lanes of the warp, active or not; or are now,
        as all lanes store there.
        """
        span = address, width
        if span in warp.defined:
            return True
        if not 0 <= address <= self._data.shape[1] - width or address % width:
            return False
        first = warp.first_index
        states = self._state[first : first + warp.lanes, address : address + width]
        if storing and ((states == UNWRITTEN) | (states == READY)).all():
            states[:] = READY
        elif not (states == READY).all():
            return False
        warp.defined.add(span)
        return True

    def _threads(self, warp: Warp) -> "slice | NDArray[np.int64]":
        first = warp.first_index
        return slice(first, first + warp.lanes) if warp.active_lanes is None else first + warp.active_lanes

    def _check(self, warp: Warp, site: Site, address: Value, width: int) -> NDArray[np.int64]:
        """The rows of `width` bytes that the active lanes access; raises the fault of the first lane that may
        not.
        """
        at = warp.select(address)
        if varies(address):
            warp.note(site, "accesses an address by", at[:, None])
        size = self._data.shape[1]
        lanes = warp.lane_numbers()
        inside = (at >= 0) & (at <= size - width)
        rows = ((warp.first_index + lanes) * size + np.where(inside, at, 0)) // width
        states = self._state.reshape(-1, width)[rows]
        allocated = inside & (states != ABSENT).all(axis=1)
        aligned = at % width == 0
        if not inside.all() and (view := warp.launch.outside.describe(int(at[inside.argmin()]))) is not None:
            text = f"accesses {width} bytes of a fragment through {view}"
            warp.fault(Code.SIM_OUT_OF_BOUNDS, site, int(lanes[inside.argmin()]), text, HINT)
        for bad, code, text, hint in (
            (~aligned, Code.SIM_MISALIGNED, f"accesses {width} bytes at {{}}, which is not a multiple of that",
             "use a narrower access"),
            (~allocated, Code.SIM_OUT_OF_BOUNDS, "accesses local memory out of bounds at {}",
             "check the coordinate against the fragment's layout"),
        ):  # fmt: skip
            if bad.any():
                first = int(bad.argmax())
                warp.fault(code, site, int(lanes[first]), text.format(self.frame.describe(int(at[first]))), hint)
        if (states == IN_FLIGHT).any():
            first, byte = np.argwhere(states == IN_FLIGHT)[0].tolist()
            operation, lane = next(writers(warp.block.cluster, self, int(rows[first]) * width + byte))
            where, other = self.frame.describe(int(at[first]) + byte), operation.describe(lane)
            text = f"uses {where} while {other} is still writing it"
            warp.fault(Code.SIM_IN_FLIGHT, site, int(lanes[first]), text, operation.cure, other=operation.origin)
        return rows


def _in_lanes(warp: Warp, hit: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """A condition of the active lanes as one of all."""
    whole = np.zeros(warp.lanes, bool)
    whole[warp.lane_numbers()] = hit
    return whole
