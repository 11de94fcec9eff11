# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Releases and acquires: fences, and the clocks that atomic writes leave at addresses (PTX ISA, Memory Consistency
Model: release and acquire patterns, scope, moral strength).

A release orders the accesses before it before those behind an acquire if the scope of each has the thread of the other.
A fence and a relaxed access have the narrower one of their scopes. Fences are of the threads that execute them.
"""

from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from ..faults import Site
from ..warp import Warp
from .clocks import Clock, join_clocks
from .flags import WIDENING, Fence, Fences, Flag, Found, Look, Looks, block_of, narrower
from .knowledge import known, learn, snapshot

Home: TypeAlias = tuple[int, int]
"""A block, by the number of its cluster and its rank."""


def reaches(scope: str, own: Home, other: Home) -> bool:
    """Whether a scope around a thread of one block has the threads of the other."""
    return own == other or (scope == "cluster" and own[0] == other[0]) or scope in ("gpu", "sys")


def home(warp: Warp) -> Home:
    """The block of a warp."""
    return warp.block.cluster.number, warp.block.rank


def fence(warp: Warp, scope: str) -> None:
    """A fence of the active lanes: relaxed writes after it release, relaxed reads before it acquire."""
    live, fences = warp.live(), warp.state(Fences)
    if observations := fences.observed.pop(scope, None):
        before = warp.mask_state()
        for observation in observations:
            if (observation.lanes & live).any():
                warp.narrow(observation.lanes & live)
                learn(warp, observation.clock)
                warp.restore(before)
        kept = [observation for observation in observations if not (observation.lanes <= live).all()]
        for observation in kept:
            observation.lanes = observation.lanes & ~live
        if kept:
            fences.observed[scope] = kept
    kept_fences: list[Fence] = []
    for other in fences.last:
        if other.scope == scope:
            other.lanes = other.lanes & ~live
        if other.lanes.any():
            kept_fences.append(other)
    lanes = warp.lane_numbers()
    clock = snapshot(warp, lanes)
    own = clock.times[warp.first_index : warp.first_index + warp.lanes]
    own[:] = warp.clock.times[warp.first_index : warp.first_index + warp.lanes]  # those of each lane alone: see `of`
    fences.last = [*kept_fences, Fence(scope, live, clock, warp.seen.copy(), warp.launch.clock)]


def fenced_knowledge(warp: Warp) -> Clock | None:
    """The knowledge of the active lanes at their last fences."""
    lanes = warp.lane_numbers().tolist()
    return join_clocks(fence.of(warp, lane) for fence in warp.state(Fences).last for lane in lanes if fence.lanes[lane])


@dataclass(slots=True)
class Releases:
    """The clocks that were released at the addresses of a state space: of the scope of the GPU or system, and those of
    each block and scope; and the writes of global memory that a read may find, by their blocks.
    """

    _wide: dict[int, Clock] = field(default_factory=dict[int, Clock])
    _of: dict[int, dict[tuple[Home, str], Clock]] = field(default_factory=dict[int, dict[tuple[Home, str], Clock]])
    _flags: dict[int, dict[int, Flag]] = field(default_factory=dict[int, dict[int, Flag]])

    def write(
        self, warp: Warp, address: int, lane: int, releases: bool, replaces: bool, scope: str, site: Site
    ) -> None:
        """An atomic write by a lane: it leaves the clock of the lane now, or at its last fences.

        A write that reads as well joins the clocks that were there: it continues the release sequence.
        """
        if replaces:
            self._wide.pop(address, None)
            self._of.pop(address, None)
            self._flags.pop(address, None)
        left: dict[str, Clock | None] = {}
        if releases:
            left[scope] = snapshot(warp, np.array([lane]))
        for last in warp.state(Fences).last:
            if last.lanes[lane]:
                reach = narrower(last.scope, scope)
                left[reach] = last.of(warp, lane).joined(left.get(reach))
        widest = max(left, key=WIDENING.index, default=scope)
        knew = known(warp, np.array([lane]))
        agent = int(warp.agents[lane])
        flag = Flag(site, agent, warp.launch.tick(), widest, join_clocks(left.values()), knew)
        self._flags.setdefault(address, {})[block_of(warp, agent)] = flag
        for reach, clock in left.items():
            assert clock is not None
            by_agent = self._of.setdefault(address, {})
            key = home(warp), reach
            by_agent[key] = clock.joined(by_agent.get(key))
            if reach in ("gpu", "sys"):
                self._wide[address] = clock.joined(self._wide.get(address))

    def read(self, warp: Warp, address: int, acquires: bool, scope: str, is_seen: bool = True) -> None:
        """An atomic read: it joins the clocks that were left at the address, at once or at the next fence. Where its
        value `is_seen`, later operations of the lanes may depend on it.
        """
        flags = self._flags.get(address) if is_seen else None
        if flags is not None:
            place = id(self), address
            looks = warp.block.state(Looks).at
            looks.pop(place, None)  # the latest is the last
            lane = int(warp.lane_numbers()[0])
            looks[place] = Look(warp, lane, warp.launch.clock, acquires, scope, flags)
        if acquires:
            learn(warp, self._reaching(warp, address, scope))
            return
        live = warp.live()
        for other in warp.launch.fences:
            left = self._reaching(warp, address, narrower(scope, other))
            if left is None:
                continue
            observations = warp.state(Fences).observed.setdefault(other, [])
            same = next((observation for observation in observations if (observation.lanes == live).all()), None)
            if same is None:
                observations.append(Found(live, left))
            else:
                same.clock = left.joined(same.clock)

    def _reaching(self, warp: Warp, address: int, scope: str) -> Clock | None:
        """The clocks at an address that reach an acquire of a scope."""
        releases = self._of.get(address)
        if releases is None:
            return None
        own = home(warp)
        wide = scope in ("gpu", "sys")
        clocks = [self._wide.get(address)] if wide else []
        for (block, reach), clock in releases.items():
            if reach in ("gpu", "sys") and wide:
                continue  # part of the first
            if reaches(reach, block, own) and reaches(scope, own, block):
                clocks.append(clock)
        known = [clock for clock in clocks if clock is not None]
        if not known:
            return None
        total = warp.clock  # joins of other clusters' clocks belong to this one's
        for clock in known:
            total = total.joined(clock)
        return total
