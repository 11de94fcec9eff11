# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Running the warps of a cluster: which is next, and when a barrier or an mbarrier lets them go on; and the clusters
that run at the same time, each in a seat with shared and local memory of its own.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from random import Random
from typing import Any, Protocol, TypeAlias
from zlib import crc32

from ....base.errors import Code as ErrorCode
from ....base.target import WARP
from ..events import Barrier, Event, Pause, ScheduleObserver, Suspension, Until, total_votes
from ..faults import SimulationError, Site
from ..memory.memories import Memories
from ..warp import Block, Cluster, Warp
from .asynchronous import InFlight, Trackers
from .clocks import Clock
from .knowledge import meet_block, meet_warps, whole_snapshot
from .liveness import Watch

Entry: TypeAlias = tuple[Warp, Suspension, Barrier, Clock | None]
"""A warp at a barrier, and the knowledge with which it has arrived where not all threads of the block meet."""
Held: TypeAlias = list[tuple[Warp, Suspension, Until]]
"""The warps that wait at mbarriers."""


@dataclass(slots=True)
class Meeting:
    """A barrier of a block: how often it was complete, and who has arrived since."""

    block: Block
    number: int
    observer: ScheduleObserver | None = None
    phase: int = 0
    arrived: list[Entry] = field(default_factory=list[Entry])
    completed: list[tuple[Warp, Site, int]] = field(default_factory=list[tuple[Warp, Site, int]])
    """The warps that completed the last phase of a number of threads, with their arrivals: the operation and a time by
    which who knows it knows its warp's clock.
    """

    @property
    def waiting(self) -> list[Warp]:
        """The warps that wait here."""
        return [warp for warp, _, barrier, _ in self.arrived if barrier.waits]

    def is_complete(self, left: Sequence[Warp]) -> bool:
        """Whether all that meet here have arrived, where these warps of the block have not returned: whole warps that
        have do not count among all threads of the block from sm_70 on. Each warp counts as 32 threads (PTX ISA, bar).
        """
        warp, _, barrier, _ = self.arrived[-1]
        for _, _, other, _ in self.arrived:
            if other.threads != barrier.threads:
                counts = " and ".join("all" if n is None else str(n) for n in (other.threads, barrier.threads))
                text = f"warps meet at barrier {barrier.id} with different numbers of threads, {counts}"
                hint = "use the same number wherever the barrier is used"
                warp.fault(ErrorCode.SIM_BARRIER, barrier.site, 0, text, hint)
            if (other.votes is None) != (barrier.votes is None):
                text = f"warp {warp.index} is at {barrier.described}, and other warps are at {other.described}"
                hint = "let all warps reduce there, or none: bar.red is not mixed with bar.sync or bar.arrive"
                warp.fault(ErrorCode.SIM_BARRIER, barrier.site, 0, text, hint, other=other.site)
        if barrier.threads is None:
            return len(self.arrived) == len(left)
        return len(self.arrived) * WARP >= barrier.threads

    def refuse_strangers(self) -> None:
        """SimulationError (E3207) for a warp that arrives at a barrier for a number of threads although nothing orders
        it behind the last phase: it might have taken the place of another warp there (PTX ISA, bar: a barrier is reused
        once it has completed).
        """
        warp, _, barrier, offered = self.arrived[-1]
        if offered is None or not warp.launch.races:
            return
        times = offered.times
        for other, site, time in self.completed:
            at = other.first_index
            if other is not warp and (len(times) <= at or times[at] < time):
                who = " and ".join(f"warp {w.index}" for w, _, _ in self.completed)
                text = (
                    f"warp {warp.index} comes to barrier {barrier.id}, which {who} used before, and nothing orders it "
                    "behind them: in another order it would meet one of them"
                )
                hint = "give each group of warps a barrier of its own, or order the groups by another barrier"
                warp.fault(ErrorCode.SIM_BARRIER, barrier.site, 0, text, hint, other=site)

    def release(self, left: Sequence[Warp]) -> list[tuple[Warp, Suspension]]:
        """Records the order of the complete barrier, and begins the next phase; the warps that may go on. Nothing
        orders the accesses of warps that have returned.
        """
        if self.arrived[0][2].threads is None and len(left) == len(self.block.warps):
            meet_block(self.block)
            self.completed = []
        else:
            offers = [offered or whole_snapshot(warp) for warp, _, _, offered in self.arrived]
            self.completed = [
                (warp, barrier.site, int(offer.times[warp.first_index]))
                for (warp, _, barrier, _), offer in zip(self.arrived, offers, strict=True)
            ]
            meet_warps(offers, self.waiting)
        if self.observer is not None:
            self.observer.meets([(warp, barrier) for warp, _, barrier, _ in self.arrived])
        votes = [barrier.votes for _, _, barrier, _ in self.arrived if barrier.votes is not None]
        total_votes(votes)
        released = [(warp, run) for warp, run, barrier, _ in self.arrived if barrier.waits]
        self.phase, self.arrived = self.phase + 1, []
        return released

    def missing(self) -> str:
        """How many of those that meet have arrived, in words."""
        threads = self.arrived[0][2].threads
        if threads is None:
            return f"{len(self.arrived)} of {len(self.block.warps)} warps"
        return f"{len(self.arrived) * WARP} of {threads} threads"


class Body(Protocol):
    """The translated body of a kernel."""

    def run(self, warp: Warp) -> Suspension:
        """Executes it in all lanes of a warp."""
        ...


def run_cluster(
    cluster: Cluster, code: Body, order: Random | None, watch: Watch, observer: ScheduleObserver | None = None
) -> Iterator[None]:
    """Runs all warps of a cluster to their end: in their order, or picked by `order` wherever several could go on.
    Yields where each has given way to others, so that other clusters may go on.

    SimulationError (E3207) where some warps wait at a barrier or an mbarrier forever, (E3232) where one would in
    another order, (E3231) where they go round forever as the `watch` sees, (E3217) for bulk copies that outlast their
    shared memory, and the errors of the kernel's steps.
    """
    ready: list[tuple[Warp, Suspension]] = [(warp, code.run(warp)) for warp in cluster.warps]
    watch.ready[cluster] = ready
    paused: set[Warp] = set()
    meetings: dict[tuple[int, int], Meeting] = {}
    held: Held = []
    ended = cluster.ended
    event: Event | None = None
    while _wake(held, ready, observer) or ready:
        if event is not None and watch.running is not None:
            watch.note(watch.running, event)
            if len(paused) >= len(ready) and all(warp in paused for warp, _ in ready):
                yield
                paused.clear()
        warp, run = ready.pop(0 if order is None else order.randrange(len(ready)))
        watch.running = warp
        if observer is not None:
            observer.runs(warp)
        event = next(run, None)
        if observer is not None:
            observer.pauses(warp, event)
        _progress(cluster)
        if isinstance(event, Pause):
            paused.add(warp)
        else:
            paused.clear()
        if event is None:
            watch.end_window()
            if warp.state(InFlight).stores:
                from .bulk import leave

                leave(warp)
            for part in warp.state(InFlight).multiplications:
                part.refuse_end()
            ended.append(warp)
            for end in cluster.warp_ends:
                end(warp)
            left = [other for other in warp.block.warps if other not in ended]
            for meeting in meetings.values():
                if meeting.block is warp.block and meeting.arrived and meeting.is_complete(left):
                    ready.extend(meeting.release(left))
            if not left:
                for end_block in cluster.block_ends:
                    end_block(warp.block)
        elif isinstance(event, Pause):
            ready.append((warp, run))
        elif isinstance(event, Until):
            held.append((warp, run, event))
        else:
            key = warp.block.rank, event.id
            meeting = meetings.setdefault(key, Meeting(warp.block, event.id, observer))
            offered = None if event.threads is None else whole_snapshot(warp)
            if offered is not None:
                warp.arrivals[cluster.launch.clock] = event.site, event.id
            meeting.arrived.append((warp, run, event, offered))
            meeting.refuse_strangers()
            if not event.waits:
                ready.append((warp, run))
            left = [other for other in warp.block.warps if other not in ended]
            if meeting.is_complete(left):
                ready.extend(meeting.release(left))
    for check in cluster.end_checks:
        check(ended)
    if len(ended) < len(cluster.warps):
        _refuse([meetings[key] for key in sorted(meetings)], held, ended)
    for barrier in cluster.state(Trackers).rows.values():
        barrier.end()
    if any((work := warp.state(InFlight)).loads or work.stores for warp in cluster.warps):
        from .bulk import drain

        drain(cluster)
    del watch.ready[cluster]
    cluster.resident.remove(cluster)
    cluster.launch.ended += cluster.size


def _wake(held: Held, ready: list[tuple[Warp, Suspension]], observer: ScheduleObserver | None) -> bool:
    """Moves the warps whose conditions hold to those that are ready; whether there are any."""
    woken = [entry for entry in held if entry[2].holds()]
    for warp, _, until in woken:
        if observer is not None:
            observer.wakes(warp, until)
    held[:] = [entry for entry in held if entry not in woken]
    ready.extend((warp, run) for warp, run, _ in woken)
    return bool(woken)


def _refuse(meetings: Sequence[Meeting], held: Held, ended: Sequence[Warp]) -> None:
    """Raises the fault of warps that wait forever: it names each barrier and mbarrier and its missing arrivals."""
    stuck = [(warp, barrier.site, f"barrier {m.number}", None) for m in meetings for warp, _, barrier, _ in m.arrived
             if barrier.waits]  # fmt: skip
    stuck += [(warp, until.site, until.describe()[0], until) for warp, _, until in held]
    first, site, place, until = min(stuck, key=_culprit)
    parts = [
        f"barrier {meeting.number}{_of_block(meeting.block)}, phase {meeting.phase}: {meeting.missing()}, "
        f"{_warps(meeting.waiting, 'wait')}"
        for meeting in meetings
        if meeting.arrived
    ]
    states = sorted(((until.describe(), warp) for warp, _, until in held), key=lambda entry: entry[0])
    for (title, state), group in groupby(states, key=lambda entry: entry[0]):
        parts.append(f"{title}, {state}, {_warps([warp for _, warp in group], 'wait')}")
    if ended:
        parts.append(_warps(ended, "have ended"))
    until = held[0][2] if until is None and held else until
    hint = "every thread of the block must execute the same barriers"
    if until is not None:
        misdirected = _hint_misdirected(first.block.cluster)
        telling = next((wait for wait in (until, *(wait for _, _, wait in held)) if wait.has_begun()), until)
        place = telling.describe()[0]
        cause = "" if misdirected else telling.cause(any(title != place for _, _, title, _ in stuck))
        where = f"{place}: " if telling is not until and cause else ""
        hint = (f"{where}{cause}: {telling.hint}" if cause else telling.hint) + misdirected
    raise SimulationError(
        ErrorCode.SIM_BARRIER if until is None else until.code,
        f"warp {first.index} waits at {place} forever; {'; '.join(parts)}",
        hint,
        site=site,
        block=first.block.coordinate,
        thread=first.block.thread(first.first_thread),
        grids=[first.block.cluster.grid.index],
    )


def _culprit(entry: tuple[Warp, Site, str, Until | None]) -> tuple[bool, bool, int]:
    """The order of warps that wait forever: those first that wait for something that others may wait for in turn, and
    those last that wait for all others of the cluster.
    """
    warp, site, _, until = entry
    is_barrier = until is None or until.code is ErrorCode.SIM_BARRIER
    return is_barrier, "cluster" in site.op, warp.first_index


def _of_block(block: Block) -> str:
    """The block in words, where there are several that run."""
    cluster = block.cluster
    return f" of {cluster.name(block.rank)}" if cluster.size > 1 or not cluster.launch.grids.is_single else ""


def _warps(warps: Iterable[Warp], do: str) -> str:
    """Some warps and their state, in words."""
    chosen = sorted(warps, key=lambda warp: warp.first_index)
    blocks = groupby(chosen, key=lambda warp: warp.block)
    names = [", ".join(str(warp.index) for warp in group) + _of_block(block) for block, group in blocks]
    if len(chosen) < 2:
        do = {"wait": "waits", "have ended": "has ended"}[do]
    return " ".join(
        ["warps" if len(chosen) > 1 else "warp" if chosen else "no warp", *(names and [" and ".join(names)]), do]
    )


def _hint_misdirected(cluster: Cluster) -> str:
    """An addition to the hint where threads wait forever and an mbarrier that is known to the cluster lacks all
    arrivals of other blocks, while that of another block at the same place has more.
    """
    for barrier in cluster.state(Trackers).rows.values():
        for other in cluster.state(Trackers).rows.values():
            more = other.place == barrier.place and other.arrived > barrier.arrived
            if more and barrier.is_published and not barrier.is_reached:
                block = cluster.name(other.maker // cluster.config.threads)
                counts = f"{other.arrived} arrivals, this one {barrier.arrived}, none by other blocks"
                text = "a thread arrives at a peer's mbarrier by the address from ptx.mapa, a commit by its mask"
                return f"; the mbarrier of {block} at the same place has {counts}: {text}"
    return ""


def _progress(cluster: Cluster) -> None:
    """Completes some of the operations that mbarriers track, where that happens at random times."""
    chance = cluster.launch.chance
    if chance is not None:
        for barrier in cluster.state(Trackers).rows.values():
            if barrier.tracked and chance.random() < 0.5:
                barrier.land()


@dataclass(slots=True)
class Seats:
    """The places of the clusters that run at the same time. The memory of the one that goes on is in `spaces`, that of
    the others is kept here.
    """

    spaces: Memories
    kept: list[tuple[Any, ...]] = field(default_factory=list[tuple[Any, ...]])
    taken: int = 0
    """The seat of the cluster that goes on."""

    def build(self, count: int, cluster: int, threads: int, warps: int) -> None:
        """Creates the memory of a number of clusters, each with its numbers of blocks, threads and warps of a block."""
        for _ in range(count):
            for space in self.spaces.of_blocks:
                space.build(cluster, warps)
            self.spaces.local.build(threads)
            self.kept.append(self._memory())
        self.taken = count - 1

    def take(self, seat: int) -> None:
        """Resumes the cluster of a seat."""
        if seat != self.taken:
            self.kept[self.taken] = self._memory()
            *blocks, local = self.kept[seat]
            for space, memory in zip(self.spaces.of_blocks, blocks, strict=True):
                space.assume(memory)
            self.spaces.local.assume(local)
            self.taken = seat

    def _memory(self) -> tuple[Any, ...]:
        return *(space.private() for space in self.spaces.of_blocks), self.spaces.local.private()

    def digest(self) -> int:
        """A checksum of all bytes of all seats, and their states."""
        mine, total = self.taken, 0
        for seat in range(len(self.kept)):
            self.take(seat)
            total = crc32(self.spaces.digest().to_bytes(4, "little"), total)
        self.take(mine)
        return total


def take_turns(begin: Iterable[Cluster], seats: Seats, order: Random | None) -> Iterator[Cluster]:
    """The clusters of a launch, each whenever it is to go on: in turns, or picked by `order`. `begin` makes the next
    one that there is a seat for, and `Cluster.resident` has those that run; who ends leaves it.
    """
    coming, running = iter(begin), deque[Cluster]()
    free = list(reversed(range(len(seats.kept))))
    while True:
        while free:
            seats.take(free[-1])
            cluster = next(coming, None)
            if cluster is None:
                break
            free.pop()
            running.append(cluster)
        if not running:
            return
        if order is not None and len(running) > 1:
            running.rotate(-order.randrange(len(running)))
        cluster = running.popleft()
        seats.take(cluster.seat)
        yield cluster
        if cluster in cluster.resident:
            running.append(cluster)
        else:
            free.append(cluster.seat)
