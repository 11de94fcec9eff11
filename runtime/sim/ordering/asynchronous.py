# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Asynchronous work: its issuer and proxy, the bytes that it reads and writes, and the event that completes it.

Bulk copies complete otherwise than the copies of cp.async: see bulk.py.

The bytes that an operation writes are in flight until it is complete: any access to them is an error. The event that
completes it decides who may see them. Only the issuing thread waits for its group, so that the writes count as
that thread's own, made at the wait. An mbarrier tells whoever waits there, and not the thread: the writes are those of
an agent of their own, in the order in which the operations of a thread complete (PTX ISA, cp.async, its groups and
waits, and cp.async.mbarrier.arrive).
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ....dialects.ptx.effects import Proxy
from ...engine import NumPyArray
from ..faults import Site
from ..warp import Cluster, Warp
from .clocks import Clock
from .knowledge import learn


class Memory(Protocol):
    """A state space that operations write: the bytes in rows of a width, as its accesses count them."""

    def hold(self, warp: Warp, rows: NumPyArray, width: int) -> None:
        """Puts rows in flight, for an operation of the warp."""
        ...

    def land(self, rows: NumPyArray, width: int, content: NDArray[np.uint8], time: int, agents: NumPyArray) -> None:
        """Ends the flight of rows with these bytes, written by agents at a time."""
        ...


class Readable(Protocol):
    """A state space that operations read. `races`: whether the launch checks for races."""

    races: bool

    def read_by(self, warp: Warp, lane: int, rows: NumPyArray, width: int, agent: int, each: bool = False) -> None:
        """Ends the reads of rows by an operation of a lane, as those of an agent made now."""
        ...


class AsyncWork(Protocol):
    """Work in flight, with the fields of `AsyncOperation`."""

    @property
    def origin(self) -> Site:
        """The operation of the program that has begun the work."""
        ...

    @property
    def cure(self) -> str:
        """The hint for a thread that uses the registers that the work writes."""
        ...

    def describe(self, lane: int) -> str: ...

    def writes(self, memory: object, byte: int) -> int | None: ...

    def reads(self, memory: object, rows: NumPyArray, width: int) -> tuple[int, int] | None: ...


@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """Rows of a memory that an operation reads for some lanes, one for each row, until it is complete."""

    memory: Readable
    rows: NumPyArray
    width: int
    lanes: NumPyArray


@dataclass(slots=True, eq=False)
class AsyncOperation:
    """Work that an operation of the program at `site` has begun for some `lanes` of a warp, one for each row of
    `memory` that it writes. The lane's `groups` says which of its groups it is part of. Its `source`, if it reads while
    it runs, must stay as it is.
    """

    site: Site
    proxy: Proxy
    issuer: Warp
    lanes: NumPyArray
    groups: NumPyArray
    memory: Memory
    rows: NumPyArray
    width: int
    content: NDArray[np.uint8]
    source: Source | None = None
    pipe: str = ""
    """The instruction that waits for it, or commits it to an mbarrier; empty for copies of cp.async."""
    further: tuple[Source, ...] = ()
    """Its reads beside the source, if it reads several matrices."""
    on_mbarrier: bool = False
    """Whether an mbarrier completes an instruction of a package."""
    flying: NDArray[np.bool_] = field(init=False)
    """The rows that are in flight."""
    tied: NDArray[np.bool_] = field(init=False)
    """The rows whose completion an mbarrier will report."""
    dates: NDArray[np.int64] = field(init=False)
    """When each row that an mbarrier tracks was complete."""

    def __post_init__(self) -> None:
        self.flying = np.ones(len(self.lanes), bool)
        self.tied = np.zeros(len(self.lanes), bool)
        self.dates = np.zeros(len(self.lanes), np.int64)

    def complete(self, which: NDArray[np.bool_]) -> None:
        """Completes the effects of some of its rows in flight, and advances the time past them."""
        which = which & self.flying
        if not which.any():
            return
        warp, lanes, tied = self.issuer, self.lanes[which], self.tied[which]
        time, agents = warp.launch.clock, warp.agents[lanes]
        if tied.any():
            assert warp.first_copy is not None
            copies = warp.first_copy + lanes
            agents = np.where(tied, warp.block.cluster.agent_of(copies), agents)
            warp.block.cluster.finished[copies[tied]] = self.dates[which & self.tied] = time
            warp.launch.tick()
        self.land(which, time, agents)

    def land(self, which: NDArray[np.bool_], time: int, agents: NumPyArray) -> None:
        """Ends the flight of some rows, as writes of these agents at a time."""
        self.memory.land(self.rows[which], self.width, self.content[which], time, agents)
        self.flying[which] = False

    @property
    def origin(self) -> Site:
        """The operation of the program."""
        return self.site

    @property
    def cure(self) -> str:
        """The hint for a thread that uses the registers that the operation writes."""
        return f"wait for the operation by {self.pipe}" if self.pipe else "wait for the operation first"

    def describe(self, lane: int) -> str:
        """The operation and the thread that issued it for a lane, in words."""
        by = " by the async proxy" if self.proxy is Proxy.ASYNC else ""
        return f"{self.site}{by} of {self.issuer.block.describe(int(self.issuer.agents[lane]))}"

    def writes(self, memory: object, byte: int) -> int | None:
        """The lane for which the operation is writing a byte of the memory; None if it is not."""
        at = self.flying & (self.rows == byte // self.width)
        return int(self.lanes[at.argmax()]) if memory is self.memory and at.any() else None

    def reads(self, memory: object, rows: NumPyArray, width: int) -> tuple[int, int] | None:
        """The first of some rows of the memory of which the operation is reading bytes, and the lane for which it does;
        None if it reads other bytes.
        """
        for source in (self.source, *self.further):
            if source is None or source.memory is not memory:
                continue
            start, first = source.rows * source.width, rows[:, None] * width
            if first.max() + width <= start.min() or start.max() + source.width <= first.min():
                continue  # most accesses are elsewhere
            at = (start < first + width) & (first < start + source.width)
            at &= np.isin(source.lanes, self.lanes[self.flying])
            if at.any():
                row, place = divmod(int(at.argmax()), at.shape[1])
                return row, int(source.lanes[place])
        return None


class AsyncMma(AsyncWork, Protocol):
    """A warp's part of a multiplication in flight: `a` are the address and size of its registers of A, if it has any,
    and `is_committed` says whether it is in a group.
    """

    a: tuple[int, int] | None
    is_committed: bool

    def refuse_end(self) -> None:
        """The end of the warp before it has waited: a SimulationError."""
        ...


class PhaseTracker(Protocol):
    """An mbarrier, as those see it who run warps: see `Mbarrier`."""

    row: int
    maker: int
    place: int
    phase: int
    pending: int
    bytes: int
    is_reached: bool
    is_published: bool

    @property
    def arrived(self) -> int: ...

    @property
    def tracked(self) -> int: ...

    def land(self) -> None: ...

    def end(self) -> None: ...


@dataclass(slots=True, eq=False)
class Trackers:
    """The mbarriers in the shared memory of a cluster, by the row of 8 bytes."""

    cluster: Cluster
    rows: dict[int, PhaseTracker] = field(default_factory=dict[int, PhaseTracker])


@dataclass(slots=True, eq=False)
class InFlight:
    """The work of a warp that is in flight: copies of cp.async, maybe some complete ones before these; bulk copies to
    shared memory and to global memory; and its parts of multiplications by its warpgroup for which it has not waited.
    """

    warp: Warp
    operations: list[AsyncOperation] = field(default_factory=list[AsyncOperation])
    loads: list[AsyncOperation] = field(default_factory=list[AsyncOperation])
    stores: list[AsyncOperation] = field(default_factory=list[AsyncOperation])
    multiplications: list[AsyncMma] = field(default_factory=list[AsyncMma])
    committed: int = 0
    """Groups of multiplications that the warp has committed."""

    def copies(self) -> tuple[AsyncOperation, ...]:
        """All copies."""
        return (*self.operations, *self.loads, *self.stores)

    def work(self) -> tuple[AsyncWork, ...]:
        """All copies and multiplications."""
        return (*self.copies(), *self.multiplications)


@dataclass(frozen=True, slots=True, eq=False)
class Arrival:
    """An arrival at an mbarrier for some lanes of a warp, once operations are complete: those in flight, and those that
    were complete before the times `since`.
    """

    site: Site
    issuer: Warp
    lanes: NumPyArray
    operations: tuple[AsyncOperation, ...]
    since: NDArray[np.int64]

    def complete(self) -> Clock:
        """Completes the operations; who waits for the arrival knows this."""
        warp = self.issuer
        assert warp.first_copy is not None
        until = self.since.copy()
        for operation in self.operations:
            which = _of_lanes(operation, self.lanes)
            operation.complete(which)
            np.maximum.at(until, operation.lanes[which], operation.dates[which] + 1)
        return _known(warp, self.lanes, until)


def start(
    warp: Warp,
    site: Site,
    proxy: Proxy,
    memory: Memory,
    rows: NumPyArray,
    width: int,
    content: NDArray[np.uint8],
    source: Source | None = None,
) -> None:
    """Starts writing the bytes `content`, an array (active, width), to a row of the memory for each active lane."""
    memory.hold(warp, rows, width)
    lanes = warp.lane_numbers()
    operation = AsyncOperation(site, proxy, warp, lanes, warp.groups[lanes], memory, rows, width, content, source)
    warp.state(InFlight).operations.append(operation)
    if source is not None:
        cluster = warp.block.cluster
        cluster.reads_global |= is_global(source.memory)
        cluster.reads_late |= not is_global(source.memory)


def commit(warp: Warp) -> None:
    """The active lanes' operations since the last commit become a group."""
    if warp.active_lanes is None:
        warp.groups += 1
    else:
        warp.groups[warp.active_lanes] += 1


def wait(warp: Warp, in_flight: int) -> None:
    """Completes the active lanes' groups except for their `in_flight` latest ones."""
    limit = warp.groups - in_flight
    if warp.mask is not None:
        limit = np.where(warp.mask, limit, 0)
    for operation in warp.state(InFlight).operations:
        if not operation.pipe:
            operation.complete(operation.groups < limit[operation.lanes])
    if warp.first_copy is not None:
        lanes = warp.lane_numbers()
        learn(warp, _known(warp, lanes, np.full(warp.lanes, warp.launch.clock)))
    _forget(warp)


def wait_all(warp: Warp) -> None:
    """Completes all operations of the active lanes, as a commit and a wait for every group do."""
    commit(warp)
    wait(warp, 0)


def wait_for(warp: Warp, pipe: str) -> None:
    """Completes all operations of the active lanes in a pipe."""
    lanes = warp.lane_numbers()
    for operation in warp.state(InFlight).operations:
        if operation.pipe == pipe:
            operation.complete(_of_lanes(operation, lanes))
            for source in (operation.source, *operation.further):
                if source is not None:
                    _end_reads(warp, source)
    _forget(warp)


def _end_reads(warp: Warp, source: Source) -> None:
    """Ends reads as those of their lanes, made now."""
    for lane in np.unique(source.lanes).tolist():
        rows = source.rows[source.lanes == lane]
        source.memory.read_by(warp, lane, rows, source.width, int(warp.agents[lane]))


def tie(warp: Warp, site: Site, lanes: NumPyArray, pipe: str = "") -> Arrival:
    """Makes an mbarrier complete all that the lanes have issued so far in a pipe, by the operation of the program at
    `site`.
    """
    cluster = warp.block.cluster
    if warp.first_copy is None:
        warp.first_copy = cluster.open_agents(warp)
    _forget(warp)
    operations = tuple([operation for operation in warp.state(InFlight).operations if operation.pipe == pipe])
    for operation in operations:
        operation.tied |= _of_lanes(operation, lanes)
    since = cluster.finished[warp.first_copy :][: warp.lanes] + 1
    return Arrival(site, warp, lanes, operations, since)


def _known(warp: Warp, lanes: NumPyArray, until: NDArray[np.int64]) -> Clock:
    """The clock of who knows the operations of some lanes that mbarriers track, up to a time for each lane."""
    cluster = warp.block.cluster
    assert warp.first_copy is not None
    times = np.zeros(cluster.threads + len(cluster.finished), np.int64)
    times[cluster.threads + warp.first_copy + lanes] = until[lanes]
    return Clock(cluster.number, times)


def _of_lanes(operation: AsyncOperation, lanes: NumPyArray) -> NDArray[np.bool_]:
    """Which rows of an operation belong to some lanes."""
    chosen = np.zeros(operation.issuer.lanes, bool)
    chosen[lanes] = True
    return chosen[operation.lanes]


def _forget(warp: Warp) -> None:
    """Drops the operations that are complete."""
    in_flight = warp.state(InFlight)
    in_flight.operations = [operation for operation in in_flight.operations if operation.flying.any()]


def is_global(memory: object) -> bool:
    """Whether all clusters have a memory together."""
    return not getattr(memory, "in_block", True)  # registers are in a thread


def _issuers(cluster: Cluster, memory: object, late: bool = False) -> Iterator[Warp]:
    """The warps whose operations can reach a memory that a cluster accesses, or those that read it `late`."""
    reaching = cluster.resident if is_global(memory) else [cluster]
    reads = [other for other in reaching if not late or other.reads_late or (other.reads_global and is_global(memory))]
    return (warp for other in reads for warp in other.warps)


def readers(cluster: Cluster, memory: object, rows: NumPyArray, width: int) -> Iterator[tuple[int, AsyncWork, int]]:
    """The operations that are reading some of the rows of a memory: the number of the first such row, and the lane for
    which each is.
    """
    for warp in _issuers(cluster, memory, late=True):
        for operation in warp.state(InFlight).work():
            read = operation.reads(memory, rows, width)
            if read is not None:
                yield read[0], operation, read[1]


def writers(cluster: Cluster, memory: object, byte: int) -> Iterator[tuple[AsyncWork, int]]:
    """The operations that are writing a byte of a memory, and the lane for which each is."""
    for warp in _issuers(cluster, memory):
        for operation in warp.state(InFlight).work():
            lane = operation.writes(memory, byte)
            if lane is not None:
                yield operation, lane
