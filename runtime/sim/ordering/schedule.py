# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Running the clusters of a launch, and the warps of each: which is next, and when a barrier or an mbarrier lets it go
on.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Protocol, TypeAlias

from ....base.errors import Code
from ....base.target import WARP
from ..events import Barrier, Event, Pause, ScheduleObserver, Suspension, Until, total_votes
from ..faults import Site
from ..launch import LaunchState
from ..memory.memories import Seats
from ..translate import Translator
from ..warp import Block, Cluster, Warp
from .asynchronous import InFlight, Trackers
from .clocks import Clock
from .knowledge import meet_block, meet_warps, whole_snapshot
from .liveness import Watchdog

if TYPE_CHECKING:
    from ..memory.journal import Journal

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
    def waiting(self) -> list[tuple[Warp, Site]]:
        """The warps that wait here, with their operations."""
        return [(warp, barrier.site) for warp, _, barrier, _ in self.arrived if barrier.waits]

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
                warp.fault(Code.SIM_BARRIER, barrier.site, 0, text, hint)
            if (other.votes is None) != (barrier.votes is None):
                text = f"warp {warp.index} is at {barrier.described}, and other warps are at {other.described}"
                hint = "let all warps reduce there, or none: bar.red is not mixed with bar.sync or bar.arrive"
                warp.fault(Code.SIM_BARRIER, barrier.site, 0, text, hint, other=other.site)
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
                warp.fault(Code.SIM_BARRIER, barrier.site, 0, text, hint, other=site)

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
            meet_warps(offers, [warp for warp, _ in self.waiting])
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
    cluster: Cluster, code: Body, order: Random | None, watchdog: Watchdog, observer: ScheduleObserver | None = None
) -> Iterator[None]:
    """Runs all warps of a cluster to their end: in their order, or picked by `order` wherever several could go on.
    Yields where each has given way to others, so that other clusters may go on.

    SimulationError (E3207) where some warps wait at a barrier or an mbarrier forever, (E3232) where one would in
    another order, (E3231) where they go round forever as the `watchdog` sees, (E3217) for bulk copies that outlast
    their shared memory, and the errors of the kernel's steps.
    """
    ready: list[tuple[Warp, Suspension]] = [(warp, code.run(warp)) for warp in cluster.warps]
    watchdog.ready[cluster] = ready
    paused: set[Warp] = set()
    meetings: dict[tuple[int, int], Meeting] = {}
    held: Held = []
    ended = cluster.ended
    event: Event | None = None
    while _wake(held, ready, observer) or ready:
        if event is not None and watchdog.running is not None:
            watchdog.note(watchdog.running, event)
            if len(paused) >= len(ready) and all(warp in paused for warp, _ in ready):
                yield
                paused.clear()
        warp, run = ready.pop(0 if order is None else order.randrange(len(ready)))
        watchdog.running = warp
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
            watchdog.end_window()
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
        from .stuck import IncompleteBarrier, refuse

        waits = [meetings[key] for key in sorted(meetings) if meetings[key].arrived]
        barriers = [IncompleteBarrier(m.block, m.number, m.phase, m.missing(), m.waiting) for m in waits]
        refuse(barriers, held, ended)
    for barrier in cluster.state(Trackers).rows.values():
        barrier.end()
    if any((work := warp.state(InFlight)).loads or work.stores for warp in cluster.warps):
        from .bulk import drain

        drain(cluster)
    del watchdog.ready[cluster]
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


def _progress(cluster: Cluster) -> None:
    """Completes some of the operations that mbarriers track, where that happens at random times."""
    chance = cluster.launch.chance
    if chance is not None:
        for barrier in cluster.state(Trackers).rows.values():
            if barrier.tracked and chance.random() < 0.5:
                barrier.land()


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


@dataclass(frozen=True, slots=True)
class ClusterRuns:
    """The runs of a launch's clusters: the code of each grid's kernel, and the `watchdog` on their warps. With `seed`,
    warps are picked at random, and clusters where they are `shuffled`, too. `processes` is how many may share out
    clusters that do not order themselves; None is one a core, or fewer.
    """

    launch: LaunchState
    seats: Seats
    codes: Sequence[Body]
    translators: Sequence[Translator]
    watchdog: Watchdog
    journal: "Journal | None"
    seed: int
    shuffled: bool
    processes: int | None

    def run(self) -> None:
        """Runs all, one in each seat at the same time; those that may be shared out on several processes, where that
        takes less time.
        """
        launch = self.launch
        order = Random(self.seed) if self.seed else None
        clusters = launch.grids.clusters(launch.in_step)
        if order is not None and self.shuffled:
            clusters = order.sample(clusters, len(clusters))
        runs: dict[Cluster, Iterator[None]] = {}
        resident: list[Cluster] = []
        observer = None if self.journal is None else self.journal.schedule

        def run(part: list[tuple[int, int]]) -> None:
            launch.coming.extend(part)
            for cluster in take_turns(self._begin(resident), self.seats, order):
                if cluster not in runs:
                    runs[cluster] = run_cluster(cluster, self.codes[cluster.grid.index], order, self.watchdog, observer)
                if next(runs[cluster], self) is self:
                    del runs[cluster]
                    self.seats.spaces.end(cluster)
                    if self.journal is not None and self.journal.is_done(cluster):
                        return

        if launch.shares and len(clusters) > 2 and self.processes != 1:
            from ..processes import Ledger, run_by_processes

            ledger = Ledger(launch, self.seats.spaces.global_, self.translators[0])
            run_by_processes(clusters, self.processes, run, ledger)
        else:
            run(clusters)

    def _begin(self, resident: list[Cluster]) -> Iterator[Cluster]:
        """The clusters that come, each with its warps and with memory in the seat that is taken."""
        launch = self.launch
        while launch.coming:
            number, size = launch.coming.popleft()
            cluster = Cluster(launch, number, size, launch.tick(), self.seats.taken, resident)
            self.watchdog.begun += size
            self.seats.spaces.reset()
            initial, threads = self.translators[cluster.grid.index].initial, cluster.config.threads
            for rank in range(1 if launch.in_step else size):
                block = Block(cluster, launch.coordinate(cluster.block_number(rank)), rank)
                if launch.in_step:
                    Warp(block, 0, size * threads, list(initial))
                    continue
                for index in range(-(-threads // WARP)):
                    Warp(block, index, min(WARP, threads - index * WARP), list(initial))
            launch.tick()  # accesses come after the begin of every block
            yield cluster
