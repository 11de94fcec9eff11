# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""When the warps of a launch run, wait and copy, in a simple model of time.

A warp executes an operation a cycle, and waits one more cycle for each wavefront, or pair of sectors, of its accesses
beyond the least. A barrier ends when the last warp has arrived, a wait for an mbarrier when the warp that ran last had
come so far and its copies have landed, `LATENCY` cycles after they began. As many clusters as a GPU of the target has
room for begin at the same time, each further one when one of them ends. Loads and other warps on the multiprocessor
cost nothing in the model, so it shows who waits for whom, and not how long a kernel takes.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...base.occupancy import blocks_at_once
from ...base.spaces import GMEM, SMEM, Traffic, traffic_of
from ...base.target import Target
from ..engine import NumPyArray
from .events import Barrier, Pause, Until
from .faults import Site
from .memory.arena import Arena
from .memory.journal import Journal
from .memory.space_state import sectors, wavefronts
from .ordering.asynchronous import InFlight
from .tcgen05.column_events import ColumnEvent, ColumnRecorder
from .tcgen05.order import Use
from .warp import Cluster, Warp

LATENCY = 400
"""The cycles that an asynchronous copy takes."""
MAX_EVENTS = 200_000
"""The default limit of a timeline's events."""
_MULTIPLIES = "mma"
_BULK = "ptx.cp.async.bulk"


@dataclass(frozen=True, slots=True)
class Event:
    """The activity of a warp of a block from one cycle to another: `runs`, `waits`, `stalls` or `copies`."""

    kind: str
    text: str
    block: tuple[int, int, int]
    warp: int
    begin: int
    end: int
    site: Site | None = None


@dataclass(slots=True)
class _State:
    """A warp's time, its current operation, and its pending work: its copies in flight, each with its begin."""

    time: int = 0
    waits_since: int = 0
    awaits: str = ""
    copies: dict[int, tuple[Any, int]] = field(default_factory=dict[int, tuple[Any, int]])
    multiplying: frozenset[int] = frozenset()
    """Its parts of multiplications in flight."""
    accesses: Counter[str] = field(default_factory=Counter[str])
    """How often each operation has accessed memory, other than mbarriers, or has begun asynchronous work since the warp
    went on.
    """
    mbarriers: int = 0
    """How often it has accessed mbarriers since."""

    def deed(self, now: int) -> str:
        """The operation that the warp has executed most since it went on, with a comma: of those that multiply, else of
        those that access memory; arithmetic where that took most of the cycles; else empty.
        """
        if self.accesses:
            return f"{max(self.accesses, key=lambda name: (_MULTIPLIES in name, self.accesses[name]))}, "
        return "arithmetic, " if now - self.time > 2 * self.mbarriers else ""


@dataclass(slots=True)
class Timeline(Journal):
    """An observer of a launch that keeps when its warps run and wait: a limited number of events, of the first blocks.
    Another observer may see the accesses, too.
    """

    most: int = MAX_EVENTS
    other: Journal | None = None
    target: Target | None = None
    """Whose GPU it is that has limited room for blocks; None for any room."""
    events: list[Event] = field(default_factory=list[Event])
    _columns: ColumnRecorder = field(init=False)
    _states: dict[Warp, _State] = field(default_factory=lambda: {})
    _began: int = 0
    _stalled: int = 0
    _latest: int = 0
    _landed: dict[Cluster, int] = field(default_factory=lambda: {})
    """When the last of the copies to mbarriers of a cluster landed; clusters run at the same time."""
    _spans: dict[str, int] = field(default_factory=dict[str, int])
    _begins: dict[Cluster, int] = field(default_factory=lambda: {})
    _ends: dict[Cluster, int] = field(default_factory=lambda: {})
    """When clusters ended whose place no other has taken."""
    _shared: int = 0

    def __post_init__(self) -> None:
        self._columns = ColumnRecorder(self.most)

    @property
    def columns(self) -> list[ColumnEvent]:
        """When columns of tensor memory were held and used."""
        return self._columns.events

    @property
    def is_watching(self) -> bool:
        """Whether it sees accesses warp by warp: always."""
        return True

    @property
    def schedule(self) -> "Timeline":
        return self

    def begin(self, arena: Arena, places: list[tuple[NumPyArray, int]], shared: Arena) -> None:
        Journal.begin(self, arena, places, shared)
        self.events.clear()
        self._states.clear()
        self._landed.clear()
        self._begins.clear()
        self._ends.clear()
        self._columns.clear()
        self._latest, self._shared = 0, shared.allocated
        if self.other is not None:
            self.other.begin(arena, places, shared)
        self._spans = {GMEM.ptx: arena.span, SMEM.ptx: shared.span}

    def see(self, space: str, warp: Warp, site: Site, rows: NumPyArray, width: int, *, writes: bool) -> None:
        if self.other is not None:
            self.other.see(space, warp, site, rows, width, writes=writes)
        if len(self.events) >= self.most or space not in self._spans:
            return
        lanes, at = warp.lane_numbers(), rows.astype(np.int64) * width % self._spans[space]
        if len(lanes) == len(at) and not warp.is_spread:
            match traffic_of(space):
                case Traffic.WAVEFRONTS:
                    total, least = wavefronts(at, lanes, width)
                    lost, why = total - least, "bank conflict"
                case Traffic.SECTORS:
                    total, least = sectors(at, width)
                    lost, why = (total - least) // 2, "scattered sectors"
                case Traffic.UNCOUNTED:
                    lost, why = 0, ""
            if lost:
                self._add("stalls", why, warp, self._now(warp), self._now(warp) + lost, site)
                self._stalled += lost
        if "mbarrier" in site.op:
            self._states[warp].mbarriers += 1
        else:
            self._states[warp].accesses[site.op] += 1
        self._poll(warp, self._now(warp))

    def polls(self, warp: Warp) -> None:
        """A warp has begun or awaited asynchronous work."""
        self._poll(warp, self._now(warp))

    def holds(self, warp: Warp, first: int, count: int, site: Site) -> None:
        self._columns.holds(warp, first, count, site, self._now(warp))

    def frees(self, warp: Warp, first: int) -> None:
        self._columns.frees(warp, first, self._now(warp))

    def uses(self, use: Use) -> None:
        if (state := self._states.get(use.warp)) is not None:
            state.accesses[use.site.op] += 1
        self._columns.polls(self._now(use.warp))
        self._columns.uses(use, self._now(use.warp))

    def runs(self, warp: Warp) -> None:
        """A warp goes on."""
        self._began, self._stalled = warp.launch.steps, 0
        if warp not in self._states:
            begin = self._begin_of(warp.block.cluster)
            self._states[warp] = _State(begin, begin)

    def _begin_of(self, cluster: Cluster) -> int:
        """When a cluster begins: at once where there is room, else as soon as another one has ended."""
        if cluster not in self._begins:
            is_full = bool(self._ends) and len(self._begins) >= self._room(cluster)
            self._begins[cluster] = self._ends.pop(min(self._ends, key=self._ends.__getitem__)) if is_full else 0
        return self._begins[cluster]

    def _room(self, cluster: Cluster) -> int:
        """The clusters that the GPU has room for."""
        config = cluster.config
        if self.target is None:
            return config.blocks
        return max(blocks_at_once(self.target, config.threads, self._shared) // cluster.size, 1)

    def pauses(self, warp: Warp, event: Barrier | Pause | Until | None) -> None:
        """Records that the warp has reached an operation where it yields to others, or its end."""
        state, now, site = self._states[warp], self._now(warp), None if event is None else event.site
        if isinstance(event, Until):
            state.awaits = event.describe()[0]
        if now > state.time:
            self._count_multiplications(warp)
            text = f"{state.deed(now)}to {'the end' if site is None else site.op}"
            self._add("runs", text, warp, state.time, now, site)
        state.accesses.clear()
        state.mbarriers = 0
        state.time = state.waits_since = self._latest = now
        self._began, self._stalled = warp.launch.steps, 0
        self._poll(warp, now)
        self._columns.polls(now)
        if site is None:
            cluster = warp.block.cluster
            self._ends[cluster] = max(self._ends.get(cluster, 0), now)
            for operation, since in state.copies.values():
                self._add("copies", operation.site.op, warp, since, now, operation.site)

    def meets(self, arrived: Iterable[tuple[Warp, Barrier]]) -> None:
        """All of these warps have arrived at a barrier."""
        entries = list(arrived)
        end = max(self._states[warp].waits_since for warp, _ in entries)
        for warp, barrier in entries:
            if barrier.waits:
                self._waits(warp, f"barrier {barrier.id}", end, barrier.site)

    def wakes(self, warp: Warp, until: Until) -> None:
        """The condition holds that a warp has waited for, such as a phase of an mbarrier."""
        for other in warp.block.cluster.warps:
            self._poll(other, self._states[other].time)
        landed = self._landed.get(warp.block.cluster, 0)
        self._waits(warp, self._states[warp].awaits, max(self._latest, landed), until.site)
        self._columns.polls(self._states[warp].time)

    def _waits(self, warp: Warp, reason: str, end: int, site: Site) -> None:
        state = self._states[warp]
        state.time = max(end, state.waits_since)
        if state.time > state.waits_since:
            self._add("waits", reason, warp, state.waits_since, state.time, site)

    def _now(self, warp: Warp) -> int:
        return self._states[warp].time + warp.launch.steps - self._began + self._stalled

    def _poll(self, warp: Warp, now: int) -> None:
        """Notes which copies of a warp have begun and ended. Where it waited for them itself, it stalls until then."""
        copies = self._states[warp].copies
        self._count_multiplications(warp)
        flying = {id(operation): operation for operation in warp.state(InFlight).copies()}
        landed = [copies.pop(number) for number in list(copies) if number not in flying]
        for operation, since in landed:
            self._add("copies", operation.site.op, warp, since, max(now, since + LATENCY), operation.site)
        last = max((since + LATENCY for _, since in landed), default=0)
        if any(operation.site.op.startswith(_BULK) or operation.on_mbarrier for operation, _ in landed):
            landed = self._landed.get(warp.block.cluster, 0)
            self._landed[warp.block.cluster] = max(landed, last)  # the warps that wait for an mbarrier wait for it
        elif last > now:
            self._add("stalls", "copies in flight", warp, now, last, landed[0][0].site)
            self._stalled += last - now
        for number, operation in flying.items():
            if number not in copies:
                copies[number] = operation, now
                self._states[warp].accesses[operation.site.op] += 1

    def _count_multiplications(self, warp: Warp) -> None:
        """Counts the multiplications that a warp has begun."""
        state, flying = self._states[warp], {id(part): part for part in warp.state(InFlight).multiplications}
        state.accesses.update(part.origin.op for number, part in flying.items() if number not in state.multiplying)
        state.multiplying = frozenset(flying)

    def _add(self, kind: str, text: str, warp: Warp, begin: int, end: int, site: Site | None) -> None:
        if len(self.events) < self.most:
            self.events.append(Event(kind, text, warp.block.coordinate, warp.index, begin, max(end, begin + 1), site))
