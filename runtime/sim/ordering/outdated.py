# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Outdated values: those that PTX's memory model lets an atomic access find although another thread has written since
(PTX ISA, Memory Consistency Model: coherence order, causality order, Fence-SC, atomicity).

The simulator executes one access after the other, so that a load finds the newest value, and a write comes last in the
coherence order of its place. Where a launch looks for outdated values, it keeps the versions that a place has held. A
load may return a version unless the thread knows a later one: it has read or written that itself, or the causality
order has an access to it before the load. If two threads execute `fence.sc`, the later one knows what the earlier
one did before. A write may as well come right behind such a version in the coherence order: memory then keeps the
newest value, and a later load may find the write as an outdated one.

An atomic operation that reads and writes finds the version right before its own write. So no write comes between the
two, except one of the value that it has read: an addition of 0, or a swap that fails.

A thread finds at most one outdated value until the place is written again, so that loops which wait come to their end.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ...engine import NumPyArray
from ..faults import Site
from ..launch import Loads
from ..memory.arena import READY, Access, Arena, Atomic
from ..memory.journal import Journal
from ..warp import Cluster, Warp
from .clocks import AGENT, Clock, Times
from .communication import Communication, FirstAccesses, known_clocks
from .knowledge import active_only, known, known_by, known_until, learn, snapshot
from .races import RaceShadow
from .releases import Home, Releases, ReleaseState, home, reaches

FENCED = "fenced"
"""Where clocks have the accesses before earlier fences of sequential consistency."""
_MOST = 512
"""The most versions of a place that are kept."""
_FEW = 32
"""The most threads that are looked at one by one."""
FORGOTTEN = (
    "the check assumes that this access finds one of the last values of its place; PTX's memory model allows it older "
    "ones, which are not kept"
)


class Versioned(Protocol):
    """The state of a memory whose versions are kept."""

    arena: Arena
    shadow: RaceShadow | None
    journal: Journal | None

    @property
    def releases(self) -> Releases: ...

    def entries(self, row: int, width: int) -> bytes: ...

    def show_row(self, row: int, width: int, byte: int = 0) -> str: ...


@dataclass(slots=True, eq=False)
class Seen:
    """The threads that have accessed a version, each with the time of its first access; those of many threads also by
    their clusters.
    """

    agents: dict[int, int] = field(default_factory=dict[int, int])
    many: FirstAccesses | None = None

    def add(self, cluster: Cluster, agent: int, time: int) -> None:
        """An access by a thread."""
        if agent in self.agents:
            return
        self.agents[agent] = time
        if self.many is not None:
            self.many.add(cluster, agent, time)
        elif len(self.agents) > _FEW:
            self.many = FirstAccesses()
            for other, first in self.agents.items():
                self.many.add(cluster, other, first)


@dataclass(slots=True, eq=False)
class Version:
    """Bytes that a place has held, the threads that have read or written them, the releases at the place in the
    meantime, and whether their write has read the version before. The write and the reads are numbered as in
    `Communication`.
    """

    content: NDArray[np.uint8]
    seen: Seen
    releases: ReleaseState | None = None
    reads_before: bool = False
    writer: int | None = None
    readers: list[int] = field(default_factory=list[int])


@dataclass(slots=True, eq=False)
class _Place:
    """The versions of a place, the newest at the end, the entries of its last write, and who has found an outdated
    value since.
    """

    versions: list[Version]
    entries: bytes = b""
    looked: set[int] = field(default_factory=set[int])
    is_cut: bool = False
    """Whether there were earlier versions."""
    is_open: bool = False
    """Whether a write may have come right behind one of these."""
    forgotten: set[bytes] = field(default_factory=set[bytes])
    """The contents of these, as many as versions are kept."""
    stays: dict[tuple[Site, bytes], dict[bytes, bool]] = field(
        default_factory=dict[tuple[Site, bytes], dict[bytes, bool]]
    )
    """Whether an operation with some operands leaves contents as they are."""

    def keep(self, most: int) -> None:
        """Forgets all versions but the last ones."""
        for version, following in zip(self.versions[:-most], self.versions[1:], strict=False):
            self.is_cut = True
            self.is_open |= not following.reads_before
            if len(self.forgotten) < _MOST:
                self.forgotten.add(version.content.tobytes())
        del self.versions[:-most]


@dataclass(slots=True, eq=False)
class Outdated:
    """The versions of all places of a launch. Its seed decides which ones accesses find: 0 the oldest that they may, 1
    those after the first choice of each thread, 2 those of its first choice; another seed leaves it to chance.
    """

    loads: Loads
    _chance: Random | None = field(init=False, default=None)
    _asked: set[int] = field(init=False, default_factory=set[int])
    _places: dict[tuple[int, int, int], _Place] = field(init=False, default_factory=dict[tuple[int, int, int], _Place])
    _fences: dict[tuple[Home, str], Clock] = field(init=False, default_factory=dict[tuple[Home, str], Clock])

    def is_over(self, space: Versioned) -> bool:
        """Whether all accesses from now on find the newest value, as there were too many."""
        return (communication := self._communication(space)) is not None and communication.is_cut

    def begin(self, space: Versioned, rows: NumPyArray, width: int) -> None:
        """Before an atomic access to rows: the values that they hold are the first version, unless they are known."""
        for row in dict.fromkeys(rows.tolist()):
            if self._known(space, row, width) is None:
                first = Version(space.arena.data[width][row].copy(), Seen(), space.releases.state_of(row * width))
                is_ready = (space.arena.state[width][row] == READY).all()
                entries = space.entries(row, width)
                self._places[id(space.shadow), row, width] = _Place([first] if is_ready else [], entries)

    def write(self, warp: Warp, space: Versioned, access: Access, rows: NumPyArray, how: Atomic) -> NDArray[np.uint8]:
        """An atomic write of rows by the active lanes, one after the other; the bytes from before in each. `begin` has
        come before it, and the checks.
        """
        width = access.width
        before = np.empty((len(rows), width), np.uint8)
        for index, row in enumerate(rows.tolist()):
            with active_only(warp, np.array([index])):
                before[index] = self._write(warp, space, access, row, index, how)
        for row in dict.fromkeys(rows.tolist()):
            self._places[id(space.shadow), row, width].entries = space.entries(row, width)
        return before

    def _write(
        self, warp: Warp, space: Versioned, access: Access, row: int, index: int, how: Atomic
    ) -> NDArray[np.uint8]:
        """The write of the one active lane, by its index among all; the bytes from before."""
        width, place = access.width, self._places[id(space.shadow), row, access.width]
        agent, lane = int(warp.active_agents()[0]), int(warp.lane_numbers()[0])
        address, versions, releases = row * width, place.versions, space.releases

        stays = {} if how.operands is None else place.stays.setdefault((access.site, how.operands(index)), {})

        def leaves(content: bytes) -> bool:
            if content not in stays:
                stays[content] = how.change(index, np.frombuffer(content, np.uint8)).tobytes() == content
            return stays[content]

        def is_possible(number: int) -> bool:
            if number == len(versions) - 1 or not versions[number + 1].reads_before:
                return True
            return how.reads and leaves(versions[number].content.tobytes())

        if self._may_find_older(warp, place, access.site, 0, agent) and (
            place.is_open or (how.reads and any(leaves(content) for content in place.forgotten))
        ):
            self._assume(space, access)
        chosen = self._chosen(warp, place, access.site, 0, agent, is_possible)
        is_newest = chosen == len(versions) - 1
        before = space.arena.data[width][row].copy() if is_newest else versions[chosen].content
        now = None if is_newest else releases.state_of(address)
        if not is_newest:
            releases.restore(address, versions[chosen].releases)
        if how.reads:
            releases.read(warp, address, how.acquires, access.scope, how.is_seen)
        if not is_newest and how.reads and leaves(before.tobytes()):  # as a load: who reads its write may read that
            releases.restore(address, now)
            self._see(warp, space, place, chosen, 0, agent)
            self._tell(space, access, row)
            return before
        releases.write(warp, address, lane, how.releases, not how.reads, access.scope, access.site)
        event = self._event(warp, space, 0, agent)
        seen = Seen({agent: warp.launch.clock})
        made = Version(how.change(index, before).copy(), seen, releases.state_of(address), how.reads, event)
        if (communication := self._communication(space)) is not None and versions:
            for earlier in (versions[chosen].writer, *versions[chosen].readers):
                communication.order(earlier, event)
            if not is_newest:
                communication.order(event, versions[chosen + 1].writer)
        if is_newest:
            space.arena.data[width][row] = made.content
            versions.append(made)
            place.keep(_MOST)
            place.looked.clear()
            return before
        versions.insert(chosen + 1, made)
        releases.restore(address, now)
        place.keep(_MOST)
        self._tell(space, access, row)
        return before

    def find(self, warp: Warp, space: Versioned, rows: NumPyArray, access: Access) -> Iterator[tuple[int, Version]]:
        """The active lanes, by their index, that find an outdated version, with that."""
        self.begin(space, rows, access.width)
        agents = warp.active_agents().tolist()
        for index, row in enumerate(rows.tolist()):
            place = self._places[id(space.shadow), row, access.width]
            agent, versions = agents[index], place.versions
            if self._may_find_older(warp, place, access.site, index, agent):
                self._assume(space, access)
            chosen = self._chosen(warp, place, access.site, index, agent)
            self._see(warp, space, place, chosen, index, agent)
            if chosen < len(versions) - 1:
                self._tell(space, access, row)
                yield index, versions[chosen]

    def _see(self, warp: Warp, space: Versioned, place: _Place, chosen: int, index: int, agent: int) -> None:
        """An active lane finds a version."""
        versions = place.versions
        versions[chosen].seen.add(warp.block.cluster, agent, warp.launch.clock)
        event, communication = self._event(warp, space, index, agent), self._communication(space)
        if event is None or communication is None:
            return
        communication.order(versions[chosen].writer, event)
        versions[chosen].readers.append(event)
        if chosen < len(versions) - 1:
            communication.order(event, versions[chosen + 1].writer)

    def _event(self, warp: Warp, space: Versioned, index: int, agent: int) -> int | None:
        """The number of an access of an active lane; None where no one asks for it."""
        communication = self._communication(space)
        return None if communication is None else communication.add(warp, index, agent)

    @staticmethod
    def _communication(space: Versioned) -> Communication | None:
        if space.journal is None:
            return None
        if space.journal.communication is None:
            space.journal.communication = Communication()
        return space.journal.communication

    @staticmethod
    def _tell(space: Versioned, access: Access, row: int) -> None:
        """Reports an access that has found an outdated value."""
        if space.journal is not None:
            space.journal.outdated.setdefault(access.site, space.show_row(row, access.width))

    @staticmethod
    def _assume(space: Versioned, access: Access) -> None:
        if space.journal is not None:
            space.journal.assume(access.site, FORGOTTEN)

    def _chosen(
        self, warp: Warp, place: _Place, site: Site, index: int, agent: int,
        is_possible: Callable[[int], bool] = lambda _: True,
    ) -> int:  # fmt: skip
        """The version that an active lane finds; -1 where the place has none."""
        versions, last = place.versions, len(place.versions) - 1
        if last < 1 or agent in place.looked or self.loads.site not in (None, site):
            return last
        own = next((number for number in range(last, -1, -1) if agent in versions[number].seen.agents), 0)
        options = [number for number in range(own, last) if is_possible(number)]
        if not options:
            return last
        least = self._least(warp, index, own, versions)
        if not (options := [number for number in options if number >= least]):
            return last
        place.looked.add(agent)
        return self._choose(agent, [*options, last])

    def _may_find_older(self, warp: Warp, place: _Place, site: Site, index: int, agent: int) -> bool:
        """Whether an active lane may find a version before those that are kept: it knows no access to them."""
        if not place.is_cut or agent in place.looked or self.loads.site not in (None, site):
            return False
        if any(agent in version.seen.agents for version in place.versions):
            return False
        return self._least(warp, index, -1, place.versions) < 0

    def _choose(self, agent: int, options: Sequence[int]) -> int:
        """The version that a thread finds, of those that it may find."""
        is_first = agent not in self._asked
        self._asked.add(agent)
        match self.loads.seed:
            case 0:
                return options[0]
            case 1:
                return options[-1 if is_first else 0]
            case 2:
                return options[0 if is_first else -1]
            case seed:
                chance = self._chance = self._chance or Random(seed)
                return chance.choice((options[-1], chance.choice(options)))

    def _known(self, space: Versioned, row: int, width: int) -> _Place | None:
        """The versions of a place; None where an access that is not atomic, or of another width, has written since."""
        place = self._places.get((id(space.shadow), row, width))
        return place if place is not None and place.entries == space.entries(row, width) else None

    def _least(self, warp: Warp, index: int, least: int, versions: Sequence[Version]) -> int:
        """The last version to which an access comes before those of an active lane, which finds none before it: not
        before the `least` one.
        """
        fenced = known(warp, warp.lane_numbers()[[index]]).proxies.get(FENCED) if self._fences else None
        clocks: list[tuple[int, Times]] | None = None
        few: list[tuple[int, int]] = []
        for number, version in reversed(list(enumerate(versions[least + 1 :], least + 1))):
            if version.seen.many is None:
                few += [(number, time << 32 | other & AGENT) for other, time in version.seen.agents.items()]
                continue
            if clocks is None:
                clocks = list(known_clocks(warp, index))
                clocks += [] if fenced is None else [(fenced.cluster, fenced.times), *fenced.earlier.items()]
            if version.seen.many.any_known(clocks):
                least = number
                break
        if not few:
            return least
        entries = np.array([entry for _, entry in few], np.int64)
        lanes = np.full(len(entries), index)
        until = known_until(warp, lanes, entries)
        if fenced is not None:
            until = np.maximum(until, known_by(warp, fenced, lanes, entries))
        return max([least, *(few[place][0] for place in np.flatnonzero(entries >> 32 < until))])

    def fence(self, warp: Warp, scope: str) -> None:
        """A fence of sequential consistency by the active lanes: they know everything before earlier fences."""
        own = home(warp)
        now = snapshot(warp, warp.lane_numbers())
        before = now.joined(now.proxies.get(FENCED))
        for (other, reach), clock in self._fences.items():
            if reaches(reach, other, own) and reaches(scope, own, other):
                before = before.joined(clock)
        before = Clock(before.cluster, before.times, before.earlier)
        self._fences[own, scope] = before.joined(self._fences.get((own, scope)))
        learn(warp, Clock(warp.clock.cluster, np.zeros(0, np.int64), proxies={FENCED: before}))
