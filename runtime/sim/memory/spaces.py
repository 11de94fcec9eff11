# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The global and shared state spaces: checked, counted accesses of a warp's active lanes."""

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ....base.errors import Code
from ....base.spaces import Traffic
from ...engine import NumPyArray
from ..ordering.asynchronous import readers
from ..ordering.knowledge import active_only, knowing_executed
from ..values import Value
from ..warp import Warp
from .arena import IN_FLIGHT, MBARRIER, READY, TAKEN, UNWRITTEN, Access, Atomic, Bytes
from .space_state import Promises, SpaceState, sectors, wavefronts

if TYPE_CHECKING:
    from ..ordering.outdated import Outdated


def _refusals():
    """The words of faults, which are loaded at the first one."""
    from . import refusals

    return refusals


def _windows(warp: Warp, access: Access, at: NumPyArray, is_ordered: bool) -> tuple[NumPyArray, NumPyArray]:
    """The shared memory of a cluster's blocks, which few launches reach into: see `windows_of`."""
    from ..ordering.cluster import windows_of

    return windows_of(warp, access, at, is_ordered)


@dataclass(slots=True)
class Space(SpaceState):
    """A state space: bytes from virtual address `base` on. Accesses are by naturally aligned rows of 1 to 16
    bytes.

    `load` and `store` raise SimulationError, naming the first thread at fault, for an access that is
    misaligned (E3203), outside every allocation (E3202), of undefined bytes (E3204), of bytes in flight
    (E3206), of an mbarrier (E3215) or in a race (E3205).
    """

    promises: Promises = field(default_factory=Promises)

    def load(self, warp: Warp, access: Access, address: Value) -> Bytes:
        """The `width` bytes at `address` in each active lane, as an array (active, width)."""
        return self.read_rows(warp, access, self.rows(warp, access, address))

    def read_rows(self, warp: Warp, access: Access, rows: NumPyArray) -> Bytes:
        """The bytes of a row for each active lane, after all checks but that of the address."""
        width = access.width
        if self.journal is not None:
            self.journal.see(self.name, warp, access.site, rows, width, writes=False)
        states = self.arena.state[width].take(rows, axis=0)
        missing = None if (states == READY).all() else self.undefined(warp, access, rows)
        if self.shadow is not None:
            conflict = self.shadow.read(warp, rows, width)
            if conflict is not None:
                _refusals().race(self, warp, access, rows, conflict, "reads")
            if access.constant:
                self.promises.read(self, warp, access, rows)
        content = self.arena.data[width].take(rows, axis=0)
        if missing is not None:
            content[states == UNWRITTEN] = missing
        return content

    def undefined(self, warp: Warp, access: Access, rows: NumPyArray) -> int:
        """The contents of the undefined bytes of these rows. The fault of the first lane that reads bytes which are not
        allocated or otherwise taken.
        """
        states = self.arena.state[access.width][rows]
        if TAKEN[states].any():
            _refusals().refuse(self, warp, access, rows, loading=True)
        lane, byte = np.argwhere(states == UNWRITTEN)[0].tolist()
        where = self.show_row(int(rows[lane]), access.width, byte)
        return warp.undefined(
            access.site, lane, f"{self.name} {where}", (self.name, int(rows[lane]) * access.width + byte)
        )

    def load_leading(self, warp: Warp, access: Access, address: Value, counts: NumPyArray) -> Bytes:
        """As `load`, but only the first `counts` bytes of each active lane; the others are 0, and are not accessed."""
        warp.note(access.site, "copies a number of bytes by", counts[:, None])
        if (counts == access.width).all():
            return self.load(warp, access, address)
        content = np.zeros((warp.active, access.width), np.uint8)
        if not counts.any():
            access.requests += warp.warps
            return content
        lanes, at, before = warp.lane_numbers(), np.zeros(warp.lanes, np.int64), warp.mask_state()
        at[lanes] = warp.select(address)

        def activate(chosen: NDArray[np.bool_]) -> None:
            reading = np.zeros(warp.lanes, bool)
            reading[lanes[chosen]] = True
            warp.narrow(reading)

        given = warp.warps
        activate(counts > 0)
        access.requests += given - warp.warps  # those of warps that copy nothing
        rows = self.rows(warp, access, at)  # counts the access, and checks its alignment
        whole = counts == access.width
        if whole.any():
            activate(whole)
            content[whole] = self.read_rows(warp, access, rows[whole[counts > 0]])
        byte = replace(access, width=1)
        for number in range(int(counts[~whole].max())):
            part = ~whole & (counts > number)
            activate(part)
            content[part, number] = self.load(warp, byte, at + number)[:, 0]
        warp.restore(before)
        return content

    def store(self, warp: Warp, access: Access, address: Value, content: Bytes) -> None:
        """Writes an array (active, width) of bytes at `address` in each active lane."""
        rows = self.claim(warp, access, address, content)
        self.arena.data[access.width][rows] = content
        self.arena.state[access.width][rows] = READY
        self._tell(warp, access, rows, content)

    def _tell(self, warp: Warp, access: Access, rows: NumPyArray, content: Bytes) -> None:
        """Reports writes to global memory to those who compare launches."""
        if not self.in_block:
            warp.note(access.site, "stores", content)
            if self.journal is not None:
                self.journal.write(rows, access.width, content)

    def claim(self, warp: Warp, access: Access, address: Value, content: Bytes | None = None) -> NumPyArray:
        """Checks a write at `address` and records it for race detection; the rows that it will change. Threads that
        write the same `content` do not race.
        """
        rows = self.rows(warp, access, address)
        self.check_writable(warp, access, rows)
        if self.shadow is not None:
            conflict = self.shadow.write(warp, rows, access.width)
            if conflict is not None and not _refusals().is_repeated(self, warp, access, rows, conflict, content):
                _refusals().race(self, warp, access, rows, conflict, "writes")
        return rows

    def check_writable(self, warp: Warp, access: Access, rows: NumPyArray) -> None:
        """A fault of the first lane that may not write its row: another state than data, or an operation reads it."""
        if self.journal is not None:
            self.journal.see(self.name, warp, access.site, rows, access.width, writes=True)
        if TAKEN[self.arena.state[access.width][rows]].any():
            _refusals().refuse(self, warp, access, rows, loading=False)
        if self.promises.rows:
            self.promises.write(self, warp, access, rows)
        for index, operation, lane in readers(warp.block.cluster, self, rows, access.width):
            where, writer = self.show_row(int(rows[index]), access.width), int(warp.lane_numbers()[index])
            text = f"writes {where} while {operation.describe(lane)} is still reading it"
            hint = "wait for the operation first, and at a barrier"
            warp.fault(Code.SIM_IN_FLIGHT, access.site, writer, text, hint, other=operation.origin)

    def hold(self, warp: Warp, rows: NumPyArray, width: int) -> None:
        """Puts rows of a width in flight; a claim has checked the write."""
        self.arena.state[width][rows] = IN_FLIGHT

    def lift(self, rows: NumPyArray, width: int) -> None:
        """Ends the flight of rows as if nothing had been written."""
        self.arena.state[width][rows] = READY

    def land(self, rows: NumPyArray, width: int, content: Bytes, time: int, agents: NumPyArray) -> None:
        """Ends the flight of rows with these bytes, written by agents at a time."""
        self.arena.data[width][rows] = content
        self.arena.state[width][rows] = READY
        if self.journal is not None:
            self.journal.write(rows, width, content)
        if self.shadow is not None:
            self.shadow.date(rows, width, time, agents)

    def read_by(self, warp: Warp, lane: int, rows: NumPyArray, width: int, agent: int, each: bool = False) -> None:
        """Ends the reads of rows by an operation of a lane, as those of an agent made now; `each` of concurrent ones is
        kept.
        """
        if self.shadow is not None:
            before = warp.mask_state()
            warp.spread(lane, len(rows))
            self.shadow.date_reads(warp, rows, width, agent, each)
            warp.restore(before)

    def update(self, warp: Warp, access: Access, address: Value, how: Atomic) -> Bytes:
        """Changes the `width` bytes at `address` atomically, lane by lane; the bytes from before in each active lane.

        `how.change` returns the bytes to write, from the number of the access and the bytes from before.
        """
        return self.change(warp, access, self.rows(warp, access, address), how)

    def change(self, warp: Warp, access: Access, rows: NumPyArray, how: Atomic) -> Bytes:
        """As `update`, of the row of each active lane."""
        width, arena = access.width, self.arena
        if not (arena.state[width][rows] == READY).all():
            _refusals().refuse(self, warp, access, rows, loading=True)
        self.check_writable(warp, access, rows)
        outdated = self._versions()
        if outdated is not None:
            outdated.begin(self, rows, width)
        if self.shadow is not None:
            conflict = self.shadow.update(warp, rows, width, access.scope, how.is_seen)
            if conflict is not None:
                _refusals().race(self, warp, access, rows, conflict, "changes")
        if outdated is not None:
            before = outdated.write(warp, self, access, rows, how)
            self._tell(warp, access, rows, arena.data[width][rows])
            return before
        self._hear(warp, access, rows, how.acquires, how.is_seen)
        data = arena.data[width]
        before = np.empty((len(rows), width), np.uint8)
        for number, (row, lane) in enumerate(zip(rows.tolist(), warp.lane_numbers().tolist(), strict=True)):
            before[number] = data[row]
            data[row] = how.change(number, before[number])
            self.releases.write(warp, row * width, lane, how.releases, False, access.scope, access.site)
        if len(rows) > 1 and len(np.unique(rows)) < len(rows):  # lanes hear each other
            self._hear(warp, access, rows, how.acquires, how.is_seen)
        self._tell(warp, access, rows, data[rows])
        return before

    def _versions(self) -> "Outdated | None":
        """The versions of places, where an access looks for an outdated one."""
        return None if self.outdated is None or self.outdated.is_over(self) else self.outdated

    def _hear(self, warp: Warp, access: Access, rows: NumPyArray, acquires: bool, is_seen: bool = True) -> None:
        """The active lanes acquire the releases at the rows that they read."""
        for row in dict.fromkeys(rows.tolist()):
            self.releases.read(warp, row * access.width, acquires, access.scope, is_seen)

    def attribute(self, warp: Warp, rows: NumPyArray, width: int, agent: int) -> None:
        """Records that an asynchronous agent made the changes of rows that the active lanes have just made."""
        if self.shadow is not None:
            self.shadow.attribute(warp, rows, width, agent)

    def observe(self, warp: Warp, access: Access, address: Value, acquires: bool) -> Bytes:
        """The `width` bytes at `address` in each active lane, read atomically."""
        rows = self.rows(warp, access, address)
        width = access.width
        if self.journal is not None:
            self.journal.see(self.name, warp, access.site, rows, width, writes=False)
        if not (self.arena.state[width][rows] == READY).all():
            _refusals().refuse(self, warp, access, rows, loading=True)
        if self.shadow is not None:
            conflict = self.shadow.observe(warp, rows, width, access.scope)
            if conflict is not None:
                _refusals().race(self, warp, access, rows, conflict, "reads")
        if (outdated := self._versions()) is not None:
            return self._version(warp, access, rows, acquires, outdated)
        self._hear(warp, access, rows, acquires)
        return self.arena.data[width][rows]

    def _version(self, warp: Warp, access: Access, rows: NumPyArray, acquires: bool, outdated: "Outdated") -> Bytes:
        """As `observe`: the bytes that the rows hold, or have held."""
        content = self.arena.data[access.width][rows].copy()
        found = dict(outdated.find(warp, self, rows, access))
        newest = np.array([index for index in range(len(rows)) if index not in found], np.int64)
        if len(newest):
            with active_only(warp, newest):
                self._hear(warp, access, rows[newest], acquires)
        for index, version in found.items():
            content[index] = version.content
            address = int(rows[index]) * access.width
            now = self.releases.state_of(address)
            self.releases.restore(address, version.releases)
            with active_only(warp, np.array([index])):
                self._hear(warp, access, rows[[index]], acquires)
            self.releases.restore(address, now)
        return content

    def publish(self, warp: Warp, access: Access, address: Value, content: Bytes, releases: bool) -> None:
        """Writes an array (active, width) of bytes at `address` in each active lane atomically."""
        rows = self.rows(warp, access, address)
        width = access.width
        self.check_writable(warp, access, rows)
        outdated = self._versions()
        if outdated is not None:
            outdated.begin(self, rows, width)
        if self.shadow is not None:
            conflict = self.shadow.update(warp, rows, width, access.scope)
            if conflict is not None:
                _refusals().race(self, warp, access, rows, conflict, "writes")
        if outdated is not None:
            how = Atomic(lambda number, _, given=content: given[number], False, releases, reads=False)
            outdated.write(warp, self, access, rows, how)
            content = self.arena.data[width][rows]
        self._tell(warp, access, rows, content)
        if outdated is None:
            for row, lane, value in zip(rows.tolist(), warp.lane_numbers().tolist(), content, strict=True):
                self.arena.data[width][row] = value
                self.releases.write(warp, row * width, lane, releases, True, access.scope, access.site)
        self.arena.state[width][rows] = READY

    def make_mbarrier(self, warp: Warp, access: Access, address: Value) -> NumPyArray:
        """The rows at `address` in each active lane, which from now on hold mbarriers."""
        rows = self.claim(warp, access, address)
        self.arena.state[access.width][rows] = MBARRIER
        return rows

    def mbarrier(self, warp: Warp, access: Access, address: Value) -> NumPyArray:
        """The rows at `address` in each active lane, which must hold mbarriers: SimulationError (E3215)."""
        rows = self.rows(warp, access, address)
        state = self.arena.state[access.width]
        wrong = (state[rows] != MBARRIER).any(axis=1)
        if wrong.any():
            index = int(wrong.argmax())
            where = self.show_row(int(rows[index]), access.width)
            hint = "one thread initialises it with ptx.mbarrier.init, then a barrier of the block"
            lane = int(warp.lane_numbers()[index])
            warp.fault(Code.SIM_MBARRIER, access.site, lane, f"there is no mbarrier at {where}", hint)
        return rows

    def use_mbarrier(self, warp: Warp, access: Access, rows: NumPyArray, ends: bool = False) -> None:
        """The active lanes use the mbarriers in `rows`; with `ends`, the rows hold none from then on. SimulationError
        (E3205) where nothing orders that.
        """
        if self.journal is not None:
            self.journal.see(self.name, warp, access.site, rows, access.width, writes=True)
        if self.shadow is not None:
            if ends:  # its operations need only be over: who ends it does not ask what they have told
                with knowing_executed(warp):
                    conflict = self.shadow.write(warp, rows, access.width)
            else:
                conflict = self.shadow.update(warp, rows, access.width)
            if conflict is not None:
                does = "ends the mbarrier at" if ends else "uses the mbarrier at"
                _refusals().race(self, warp, access, rows, conflict, does)
        if ends:
            self.arena.state[access.width][rows] = UNWRITTEN

    def rows(self, warp: Warp, access: Access, address: Value) -> NumPyArray:
        """The row of each active lane's access, checked for alignment and counted."""
        at = warp.select(address)
        warp.note(access.site, "accesses an address by", at[:, None])
        width = access.width
        offsets = self.offsets(at)
        if int(np.bitwise_or.reduce(offsets)) & (width - 1):
            index = int(np.argmax(offsets & (width - 1) != 0))
            warp.fault(
                Code.SIM_MISALIGNED, access.site, int(warp.lane_numbers()[index]),
                f"the {self.name} address {self.show(int(at[index]))} is not a multiple of the "
                f"{width} bytes accessed",
                "use a narrower access, or align the tensor and the strides of its layout",
            )  # fmt: skip
        rows, span = offsets // width, self.arena.span // width
        start = 0
        if self.in_block:
            start = warp.blocks * span if warp.spans_blocks else warp.block.rank * span
        if int(rows.view(np.uint64).max()) >= span:
            warp.leave_lockstep()
            ranks, inner = _windows(warp, access, at, self.races) if self.in_block else (0, at)
            rows = (inner - self.base) // width
            if int(rows.view(np.uint64).max()) >= span:
                index = int(np.argmax(rows.view(np.uint64) >= span))
                _refusals().out_of_bounds(
                    self, warp, access, index, int(inner[index]), access.kind in ("load", "matrix")
                )
            start = ranks * span
        elif access.home is not None:
            home = access.home
            away = (offsets - home.start).view(np.uint64) >= home.size
            if away.any():
                _refusals().leave(self, warp, access, int(away.argmax()), offsets)
        self._cost(warp, access, at)
        return rows + start

    def _cost(self, warp: Warp, access: Access, at: NumPyArray) -> None:
        match self.row.traffic:
            case Traffic.WAVEFRONTS:
                transactions, minimum = wavefronts(at, warp.lane_numbers(), access.width)
            case Traffic.SECTORS:
                transactions, minimum = sectors(at, access.width, warp.lane_numbers())
            case Traffic.UNCOUNTED:
                transactions = minimum = 0
        access.requests += warp.warps
        access.threads += warp.active
        access.transactions += transactions
        access.minimum += minimum
