# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The global and shared state spaces: checked, counted accesses of a warp's active lanes."""

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ....base.errors import Code
from ....base.spaces import Sharer, Traffic
from ....base.spaces import Space as MemorySpace
from ..ordering.asynchronous import readers
from ..ordering.cluster import windows_of
from ..ordering.races import RaceShadow
from ..ordering.releases import Releases
from ..values import Value
from ..warp import Warp
from . import costs
from .arena import IN_FLIGHT, MBARRIER, READY, TAKEN, UNWRITTEN, Arena
from .costs import Access, Atomic
from .refusals import Promises, is_repeated, leave, out_of_bounds, race, refuse

if TYPE_CHECKING:
    from .journal import Journal

Bytes = NDArray[np.uint8]


@dataclass(slots=True)
class Space:
    """A state space: bytes from virtual address `base` on. Accesses are by naturally aligned rows of 1 to 16
    bytes.

    `load` and `store` raise SimulationError, naming the first thread at fault, for an access that is
    misaligned (E3203), outside every allocation (E3202), of undefined bytes (E3204), of bytes in flight
    (E3206), of an mbarrier (E3215) or in a race (E3205).
    """

    row: MemorySpace
    base: int
    races: bool
    arena: Arena = field(default_factory=Arena)
    shadow: RaceShadow | None = None
    releases: Releases = field(default_factory=Releases)
    swizzles: Bytes = field(default_factory=lambda: np.zeros(0, np.uint8))
    """Of each 16 bytes of shared memory the swizzle of the last tensor copy there, 1 more than its bits; 0 of none."""
    journal: "Journal | None" = None
    """The observer of writes, if there is one."""
    promises: Promises = field(default_factory=Promises)
    name: str = field(init=False)
    """That of the state space."""
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
        if self.races:
            self.shadow = RaceShadow(self.arena.data[1].size, readers, self.name, self.in_block)

    def private(self) -> tuple[Any, ...]:
        """All that the cluster which goes on has here, for `assume`."""
        return self.arena.data, self.arena.state, self.shadow, self.releases, self.swizzles

    def assume(self, memory: tuple[Any, ...]) -> None:
        """Takes what another cluster has here."""
        self.arena.data, self.arena.state, self.shadow, self.releases, self.swizzles = memory

    def reset(self) -> None:
        """Makes all bytes undefined and forgets past accesses, as for a new block."""
        self.arena.reset()
        self.swizzles[:] = 0
        self.releases = Releases()
        if self.shadow is not None:
            self.shadow.reset()

    def load(self, warp: Warp, access: Access, address: Value) -> Bytes:
        """The `width` bytes at `address` in each active lane, as an array (active, width)."""
        return self.read_rows(warp, access, self.rows(warp, access, address))

    def read_rows(self, warp: Warp, access: Access, rows: NDArray[Any]) -> Bytes:
        """The bytes of a row for each active lane, after all checks but that of the address."""
        width = access.width
        if self.journal is not None:
            self.journal.see(self.name, warp, access.site, rows, width, writes=False)
        states = self.arena.state[width].take(rows, axis=0)
        missing = None if (states == READY).all() else self.undefined(warp, access, rows)
        if self.shadow is not None:
            conflict = self.shadow.read(warp, rows, width)
            if conflict is not None:
                race(self, warp, access, rows, conflict, "reads")
            if access.constant:
                self.promises.read(self, warp, access, rows)
        content = self.arena.data[width].take(rows, axis=0)
        if missing is not None:
            content[states == UNWRITTEN] = missing
        return content

    def undefined(self, warp: Warp, access: Access, rows: NDArray[Any]) -> int:
        """The contents of the undefined bytes of these rows. The fault of the first lane that reads bytes which are not
        allocated or otherwise taken.
        """
        states = self.arena.state[access.width][rows]
        if TAKEN[states].any():
            refuse(self, warp, access, rows, loading=True)
        lane, byte = np.argwhere(states == UNWRITTEN)[0].tolist()
        where = self.show_row(int(rows[lane]), access.width, byte)
        return warp.undefined(
            access.site, lane, f"{self.name} {where}", (self.name, int(rows[lane]) * access.width + byte)
        )

    def load_leading(self, warp: Warp, access: Access, address: Value, counts: NDArray[Any]) -> Bytes:
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

    def _tell(self, warp: Warp, access: Access, rows: NDArray[Any], content: Bytes) -> None:
        """Tells those who compare launches what is written to global memory."""
        if not self.in_block:
            warp.note(access.site, "stores", content)
            if self.journal is not None:
                self.journal.write(rows, access.width, content)

    def claim(self, warp: Warp, access: Access, address: Value, content: Bytes | None = None) -> NDArray[Any]:
        """Checks a write at `address` and records it for race detection; the rows that it will change. Threads that
        write the same `content` do not race.
        """
        rows = self.rows(warp, access, address)
        self.check_writable(warp, access, rows)
        if self.shadow is not None:
            conflict = self.shadow.write(warp, rows, access.width)
            if conflict is not None and not is_repeated(self, warp, access, rows, conflict, content):
                race(self, warp, access, rows, conflict, "writes")
        return rows

    def check_writable(self, warp: Warp, access: Access, rows: NDArray[Any]) -> None:
        """A fault of the first lane that may not write its row: another state than data, or an operation reads it."""
        if self.journal is not None:
            self.journal.see(self.name, warp, access.site, rows, access.width, writes=True)
        if TAKEN[self.arena.state[access.width][rows]].any():
            refuse(self, warp, access, rows, loading=False)
        if self.promises.rows:
            self.promises.write(self, warp, access, rows)
        for index, operation, lane in readers(warp.block.cluster, self, rows, access.width):
            where, writer = self.show_row(int(rows[index]), access.width), int(warp.lane_numbers()[index])
            text = f"writes {where} while {operation.describe(lane)} is still reading it"
            hint = "wait for the operation first, and at a barrier"
            warp.fault(Code.SIM_IN_FLIGHT, access.site, writer, text, hint, other=operation.origin)

    def hold(self, warp: Warp, rows: NDArray[Any], width: int) -> None:
        """Puts rows of a width in flight; a claim has checked the write."""
        self.arena.state[width][rows] = IN_FLIGHT

    def lift(self, rows: NDArray[Any], width: int) -> None:
        """Ends the flight of rows as if nothing had been written."""
        self.arena.state[width][rows] = READY

    def land(self, rows: NDArray[Any], width: int, content: Bytes, time: int, agents: NDArray[Any]) -> None:
        """Ends the flight of rows with these bytes, written by agents at a time."""
        self.arena.data[width][rows] = content
        self.arena.state[width][rows] = READY
        if self.journal is not None:
            self.journal.write(rows, width, content)
        if self.shadow is not None:
            self.shadow.date(rows, width, time, agents)

    def read_by(self, warp: Warp, lane: int, rows: NDArray[Any], width: int, agent: int) -> None:
        """Ends the reads of rows by an operation of a lane, as those of an agent made now."""
        if self.shadow is not None:
            before = warp.mask_state()
            warp.spread(lane, len(rows))
            self.shadow.date_reads(warp, rows, width, agent)
            warp.restore(before)

    def update(self, warp: Warp, access: Access, address: Value, how: Atomic) -> Bytes:
        """Changes the `width` bytes at `address` atomically, lane by lane; the bytes from before in each active lane.

        `how.change` returns the bytes to write, from the number of the access and the bytes from before.
        """
        return self.change(warp, access, self.rows(warp, access, address), how)

    def change(self, warp: Warp, access: Access, rows: NDArray[Any], how: Atomic) -> Bytes:
        """As `update`, of the row of each active lane."""
        width, arena = access.width, self.arena
        if not (arena.state[width][rows] == READY).all():
            refuse(self, warp, access, rows, loading=True)
        self.check_writable(warp, access, rows)
        if self.shadow is not None:
            conflict = self.shadow.update(warp, rows, width, access.scope, how.is_seen)
            if conflict is not None:
                race(self, warp, access, rows, conflict, "changes")
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

    def _hear(self, warp: Warp, access: Access, rows: NDArray[Any], acquires: bool, is_seen: bool = True) -> None:
        """Lets the active lanes learn what was released at the rows that they read."""
        for row in dict.fromkeys(rows.tolist()):
            self.releases.read(warp, row * access.width, acquires, access.scope, is_seen)

    def attribute(self, warp: Warp, rows: NDArray[Any], width: int, agent: int) -> None:
        """Records that the changes of rows that the active lanes have just made are those of an asynchronous agent."""
        if self.shadow is not None:
            self.shadow.attribute(warp, rows, width, agent)

    def observe(self, warp: Warp, access: Access, address: Value, acquires: bool) -> Bytes:
        """The `width` bytes at `address` in each active lane, read atomically."""
        rows = self.rows(warp, access, address)
        width = access.width
        if self.journal is not None:
            self.journal.see(self.name, warp, access.site, rows, width, writes=False)
        if not (self.arena.state[width][rows] == READY).all():
            refuse(self, warp, access, rows, loading=True)
        if self.shadow is not None:
            conflict = self.shadow.observe(warp, rows, width, access.scope)
            if conflict is not None:
                race(self, warp, access, rows, conflict, "reads")
        self._hear(warp, access, rows, acquires)
        return self.arena.data[width][rows]

    def publish(self, warp: Warp, access: Access, address: Value, content: Bytes, releases: bool) -> None:
        """Writes an array (active, width) of bytes at `address` in each active lane atomically."""
        rows = self.rows(warp, access, address)
        width = access.width
        self.check_writable(warp, access, rows)
        if self.shadow is not None:
            conflict = self.shadow.update(warp, rows, width, access.scope)
            if conflict is not None:
                race(self, warp, access, rows, conflict, "writes")
        self._tell(warp, access, rows, content)
        for row, lane, value in zip(rows.tolist(), warp.lane_numbers().tolist(), content, strict=True):
            self.arena.data[width][row] = value
            self.releases.write(warp, row * width, lane, releases, True, access.scope, access.site)
        self.arena.state[width][rows] = READY

    def make_mbarrier(self, warp: Warp, access: Access, address: Value) -> NDArray[Any]:
        """The rows at `address` in each active lane, which from now on hold mbarriers."""
        rows = self.claim(warp, access, address)
        self.arena.state[access.width][rows] = MBARRIER
        return rows

    def mbarrier(self, warp: Warp, access: Access, address: Value, ends: bool = False) -> NDArray[Any]:
        """The rows at `address` in each active lane, which must hold mbarriers; with `ends` no more."""
        rows = self.rows(warp, access, address)
        state = self.arena.state[access.width]
        wrong = (state[rows] != MBARRIER).any(axis=1)
        if wrong.any():
            index = int(wrong.argmax())
            where = self.show_row(int(rows[index]), access.width)
            hint = "one thread initialises it with ptx.mbarrier.init, then a barrier of the block"
            lane = int(warp.lane_numbers()[index])
            warp.fault(Code.SIM_MBARRIER, access.site, lane, f"there is no mbarrier at {where}", hint)
        if self.journal is not None:
            self.journal.see(self.name, warp, access.site, rows, access.width, writes=True)
        if self.shadow is not None:
            conflict = (self.shadow.write if ends else self.shadow.update)(warp, rows, access.width)
            if conflict is not None:
                race(self, warp, access, rows, conflict, "ends the mbarrier at" if ends else "uses the mbarrier at")
        if ends:
            state[rows] = UNWRITTEN
        return rows

    def rows(self, warp: Warp, access: Access, address: Value) -> NDArray[Any]:
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
            start = warp.blocks * span if warp.is_gang else warp.block.rank * span
        if int(rows.view(np.uint64).max()) >= span:
            warp.apart()
            ranks, inner = windows_of(warp, access, at, self.races) if self.in_block else (0, at)
            rows = (inner - self.base) // width
            if int(rows.view(np.uint64).max()) >= span:
                index = int(np.argmax(rows.view(np.uint64) >= span))
                out_of_bounds(self, warp, access, index, int(inner[index]), access.kind in ("load", "matrix"))
            start = ranks * span
        elif access.home is not None:
            home = access.home
            away = (offsets - home.start).view(np.uint64) >= home.size
            if away.any():
                leave(self, warp, access, int(away.argmax()), offsets)
        self._cost(warp, access, at)
        return rows + start

    def _cost(self, warp: Warp, access: Access, at: NDArray[Any]) -> None:
        match self.row.traffic:
            case Traffic.WAVEFRONTS:
                transactions, minimum = costs.wavefronts(at, warp.lane_numbers(), access.width)
            case Traffic.SECTORS:
                transactions, minimum = costs.sectors(at, access.width, warp.lane_numbers())
            case Traffic.UNCOUNTED:
                transactions = minimum = 0
        access.requests += warp.warps
        access.threads += warp.active
        access.transactions += transactions
        access.minimum += minimum

    def offsets(self, at: NDArray[Any]) -> NDArray[Any]:
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
