# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Outdated values: those that PTX's memory model lets a relaxed, volatile or acquiring load return although another
thread has written since (PTX ISA, Memory Consistency Model: coherence, causality order, Fence-SC).

The simulator executes one access after the other, so that a load finds the newest value. Where a launch looks for
outdated ones, it keeps the versions that a place has held since the first atomic write. A load may return a version
unless the thread knows a later one: it has read or written that itself, or the causality order has an access to it
before the load. Of two threads that execute `fence.sc`, the later one knows what the earlier one did before.

A thread finds at most one outdated value until the place is written again, so that loops which wait come to their end.
Atomic operations that read and write always find the newest value.
"""

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..faults import Site
from ..launch import Loads
from ..memory.arena import READY, Arena
from ..warp import Warp
from .clocks import AGENT, Clock
from .knowledge import known, known_by, known_until, learn, snapshot
from .races import RaceShadow
from .releases import Home, Kept, Releases, home, reaches

FENCED = "fenced"
"""Where clocks have the accesses before earlier fences of sequential consistency."""
_MOST = 16
"""The most versions of a place that are kept."""


class Versioned(Protocol):
    """The state of a memory whose versions are kept."""

    arena: Arena
    shadow: RaceShadow | None

    @property
    def releases(self) -> Releases: ...

    def entries(self, row: int, width: int) -> bytes: ...


@dataclass(slots=True, eq=False)
class Version:
    """Bytes that a place has held, the threads that have read or written them, each with the time of its first access,
    and the releases at the place in the meantime.
    """

    content: NDArray[np.uint8]
    seen: dict[int, int]
    releases: Kept | None = None


@dataclass(slots=True, eq=False)
class _Place:
    """The versions of a place, the newest at the end, the entries of its last write, and who has found an outdated
    value since.
    """

    versions: list[Version]
    entries: bytes = b""
    looked: set[int] = field(default_factory=set[int])


@dataclass(slots=True, eq=False)
class Outdated:
    """The versions of all places of a launch. Its seed decides which ones loads find: 0 the oldest that they may, 1
    those after the first choice of each thread, 2 those of its first choice; another seed leaves it to chance.
    """

    loads: Loads
    _chance: Random | None = field(init=False, default=None)
    _asked: set[int] = field(init=False, default_factory=set[int])
    _places: dict[tuple[int, int, int], _Place] = field(init=False, default_factory=dict[tuple[int, int, int], _Place])
    _fences: dict[tuple[Home, str], Clock] = field(init=False, default_factory=dict[tuple[Home, str], Clock])

    @contextmanager
    def keeping(self, warp: Warp, space: Versioned, rows: NDArray[Any], width: int) -> Generator[None]:
        """Around an atomic write of rows by the active lanes: keeps the values before it, and the written ones."""
        self._begin(space, rows, width)
        yield
        self._end(warp, space, rows, width)

    def _begin(self, space: Versioned, rows: NDArray[Any], width: int) -> None:
        """The values that rows hold are the first version, unless they are known."""
        for row in dict.fromkeys(rows.tolist()):
            if self._known(space, row, width) is None:
                first = Version(space.arena.data[width][row].copy(), {}, space.releases.kept(row * width))
                is_ready = (space.arena.state[width][row] == READY).all()
                self._places[id(space.shadow), row, width] = _Place([first] if is_ready else [])

    def _end(self, warp: Warp, space: Versioned, rows: NDArray[Any], width: int) -> None:
        """The active lanes have each written the value that a row holds now."""
        for row, agent in zip(rows.tolist(), warp.active_agents().tolist(), strict=True):
            place = self._places[id(space.shadow), row, width]
            content, kept = space.arena.data[width][row].copy(), space.releases.kept(row * width)
            place.versions.append(Version(content, {agent: warp.launch.clock}, kept))
            del place.versions[:-_MOST]
            place.entries = space.entries(row, width)
            place.looked.clear()

    def find(
        self, warp: Warp, space: Versioned, rows: NDArray[Any], width: int, site: Site
    ) -> Iterator[tuple[int, Version]]:
        """The active lanes, by their index, that find an outdated version, with that."""
        agents, time = warp.active_agents().tolist(), warp.launch.clock
        is_here = self.loads.site in (None, site)
        for index, row in enumerate(rows.tolist()):
            place = self._known(space, row, width)
            if place is None:
                continue
            agent, last = agents[index], len(place.versions) - 1
            least = next((n for n in range(last, 0, -1) if self._knows(warp, index, agent, place.versions[n])), 0)
            chosen = last
            if is_here and least < last and agent not in place.looked:
                place.looked.add(agent)
                chosen = self._choose(agent, least, last)
            place.versions[chosen].seen.setdefault(agent, time)
            if chosen < last:
                yield index, place.versions[chosen]

    def _choose(self, agent: int, least: int, last: int) -> int:
        """The version that a thread finds, of those that it may find."""
        is_first = agent not in self._asked
        self._asked.add(agent)
        match self.loads.seed:
            case 0:
                return least
            case 1:
                return last if is_first else least
            case 2:
                return least if is_first else last
            case seed:
                chance = self._chance = self._chance or Random(seed)
                return chance.choice((last, chance.randint(least, last)))

    def _known(self, space: Versioned, row: int, width: int) -> _Place | None:
        """The versions of a place; None where an access that is not atomic, or of another width, has written since."""
        place = self._places.get((id(space.shadow), row, width))
        return place if place is not None and place.entries == space.entries(row, width) else None

    def _knows(self, warp: Warp, index: int, agent: int, version: Version) -> bool:
        """Whether an access to a version comes before those of an active lane."""
        if agent in version.seen:
            return True
        entries = np.array([time << 32 | other & AGENT for other, time in version.seen.items()], np.int64)
        lanes = np.full(len(entries), index)
        until = known_until(warp, lanes, entries)
        if (fenced := known(warp, warp.lane_numbers()[[index]]).proxies.get(FENCED)) is not None:
            until = np.maximum(until, known_by(warp, fenced, lanes, entries))
        return bool((entries >> 32 < until).any())

    def fence(self, warp: Warp, scope: str) -> None:
        """A fence of sequential consistency of the active lanes: they know what was before earlier ones."""
        own = home(warp)
        now = snapshot(warp, warp.lane_numbers())
        before = now.joined(now.proxies.get(FENCED))
        for (other, reach), clock in self._fences.items():
            if reaches(reach, other, own) and reaches(scope, own, other):
                before = before.joined(clock)
        before = Clock(before.cluster, before.times, before.earlier)
        self._fences[own, scope] = before.joined(self._fences.get((own, scope)))
        learn(warp, Clock(warp.clock.cluster, np.zeros(0, np.int64), proxies={FENCED: before}))
