# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Releases and acquires: fences, and the clocks that atomic writes leave at addresses (PTX ISA, Memory Consistency
Model: release and acquire patterns, scope, moral strength); and the reads that have found such writes.

A release orders the accesses before it before those behind an acquire if the scope of each has the thread of the other.
A fence and a relaxed access have the narrower one of their scopes. A fence counts only for the threads that execute it.

The reads that a block has made explain why a write and a read do not order two accesses. They do not decide which
accesses are a race, but for the flag itself: who has read a write atomically comes after it (observation order).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ....base.target import WARP
from ..faults import Site
from ..warp import Block, Bools, Warp
from .clocks import Clock, Conflict, join_clocks
from .knowledge import known, learn, snapshot, times_of

WIDENING = ("cta", "cluster", "gpu", "sys")
"""The scopes, each within the next."""

FENCE = 'ptx.fence "acq_rel"'


def narrower(first: str, second: str) -> str:
    """The scope of the two that has fewer threads."""
    return min(first, second, key=WIDENING.index)


@dataclass(frozen=True, slots=True)
class Flag:
    """An atomic write of an agent: a time behind it, the widest scope in which it releases, the clock that it has left,
    and all that the thread knew.
    """

    site: Site
    agent: int
    time: int
    scope: str
    left: Clock | None
    knew: Clock


@dataclass(frozen=True, slots=True)
class Look:
    """An atomic read by a lane, which has found the last flags of some blocks, by the numbers of these."""

    warp: Warp
    lane: int
    time: int
    acquires: bool
    scope: str
    flags: Mapping[int, Flag]


@dataclass(slots=True, eq=False)
class Fence:
    """The last fence of a scope of some `lanes`: the knowledge of their warp, their accesses up to the time
    included."""

    scope: str
    lanes: Bools
    clock: Clock
    seen: NDArray[np.int64]
    time: int

    def of(self, warp: Warp, lane: int) -> Clock:
        """The clock of one of the lanes at the fence."""
        times = self.clock.times.copy()
        own = times[warp.first_index : warp.first_index + warp.lanes]
        np.maximum(own, self.seen[lane], out=own)
        own[lane] = self.time
        return Clock(self.clock.cluster, times, self.clock.earlier, self.clock.proxies)


@dataclass(slots=True, eq=False)
class Found:
    """Clocks that relaxed reads of some `lanes` have found, for a fence of a scope behind them."""

    lanes: Bools
    clock: Clock


@dataclass(slots=True, eq=False)
class Fences:
    """The last fences of a warp's lanes, and the clocks that its relaxed reads have found released, by the scope of a
    fence after them.
    """

    warp: Warp
    last: list[Fence] = field(default_factory=list[Fence])
    observed: dict[str, list[Found]] = field(default_factory=dict[str, list[Found]])


@dataclass(slots=True, eq=False)
class Looks:
    """The last atomic read of a block at each place of a state space that has found an atomic write, the latest at the
    end.
    """

    block: Block
    at: dict[tuple[int, int], Look] = field(default_factory=dict[tuple[int, int], Look])


def block_of(warp: Warp, agent: int) -> int:
    """The number in the launch of a thread's block."""
    return warp.launch.grids.place_of(agent)[0]


def has_seen(warp: Warp, place: tuple[int, int], conflict: Conflict) -> bool:
    """Whether the one active lane has read the atomic write at a place that it conflicts with."""
    look, lane = warp.block.state(Looks).at.get(place), int(warp.lane_numbers()[0])
    if look is None or warp.active != 1 or look.warp is not warp or look.lane != lane:
        return False
    flag = look.flags.get(block_of(warp, conflict.agent))
    return flag is not None and flag.agent == conflict.agent and conflict.time < flag.time <= look.time


def missing_edge(warp: Warp, lane: int, agent: int, time: int) -> str:
    """The reason that the flags which this lane's block has read do not order an access of a thread of another block
    before the lane's; empty if it has read none that was written since.
    """
    peer = block_of(warp, agent)
    for look in reversed(warp.block.state(Looks).at.values()):
        flag = look.flags.get(peer)
        if flag is not None and time < flag.time <= look.time:
            return _why_unreleased(warp, flag, agent, time) or _why_unacquired(warp, lane, look, flag)
    return ""


_IDIOM = (
    "; a fence of each thread before a barrier releases the writes of that thread only for its own flags: the "
    "thread that writes this flag must fence after the barrier"
)
"""For kernels in which all threads fence, meet at a barrier, and one of them tells other blocks by a relaxed atomic."""


def _why_unreleased(warp: Warp, flag: Flag, agent: int, time: int) -> str:
    """Why a write does not release an access of a thread of its block; empty if it does."""
    if flag.left is None:
        hint = f"{flag.site} does not release: put {FENCE} before it, or make it a release"
        return f"{hint}{_IDIOM}" if agent != flag.agent and warp.launch.fences else hint
    if _knows(warp, flag.left, agent, time):
        return ""
    if agent == flag.agent or _knows(warp, flag.knew, agent, time):
        hint = f"{flag.site} releases only the accesses before its thread's fence: put {FENCE} right before it"
        return f"{hint}{_IDIOM}" if agent != flag.agent else hint
    alone = warp.block.cluster.config.threads <= WARP
    means = "ptx.bar.warp.sync" if alone else "a barrier of the threads that write"
    return f"{flag.site} releases only its own thread's accesses: put {means} between the access and it"


def _why_unacquired(warp: Warp, lane: int, look: Look, flag: Flag) -> str:
    """Why a read that has found a release does not acquire for a lane."""
    site, scopes = flag.site, [look.scope] if look.acquires else []
    scopes += [narrower(fence.scope, look.scope) for fence in look.warp.state(Fences).last if fence.time > look.time]
    if not scopes:
        return f"the read of the value of {site} does not acquire: put {FENCE} after it"
    scope = max(scopes, key=WIDENING.index)
    grid = warp.launch.grids.of_block(block_of(warp, flag.agent))
    number, thread = warp.block.cluster.place_of(flag.agent)
    near: Home = grid.device, number, thread // grid.config.threads
    if not all(reaches(name, near, home(warp)) for name in (flag.scope, scope)):
        what, wide = ("block", "gpu") if near[0] == home(warp)[0] else ("device", "sys")
        return (
            f'the release at {site} is of scope "{flag.scope}", the acquire of scope "{scope}", and one of them '
            f'does not reach the other {what}: give both, and their fences, scope "{wide}"'
        )
    if look.warp is warp and look.lane == lane:
        return ""
    x, y, z = look.warp.block.thread(look.warp.first_thread + look.lane)
    who = f"thread ({x},{y},{z}) has read the value of {site}, but this one has not"
    if not look.acquires:
        return f"{who}, so its own fence acquires nothing: put {FENCE} after the read, then a barrier"
    means = "ptx.bar.warp.sync" if look.warp is warp else "a barrier of the block"
    return f"{who}: put {means} after the read"


def _knows(warp: Warp, clock: Clock, agent: int, time: int) -> bool:
    """Whether a clock, maybe of another cluster, knows an access that an agent made at a time."""
    local = Clock(warp.block.cluster.number, np.zeros(0, np.int64)).joined(clock)
    return int(times_of(local, warp, np.array([time << 32 | agent]))[0]) > time


Home: TypeAlias = tuple[int, int, int]
"""A block, by its device, the number of its cluster and its rank."""


def reaches(scope: str, own: Home, other: Home) -> bool:
    """Whether a scope around a thread of one block has the threads of the other."""
    shared = len(WIDENING) - 1 - WIDENING.index(scope)
    return own[:shared] == other[:shared]


def home(warp: Warp) -> Home:
    """The block of a warp."""
    cluster = warp.block.cluster
    return cluster.grid.device, cluster.number, warp.block.rank


def fence(warp: Warp, scope: str, *, acquires: bool = True, releases: bool = True) -> None:
    """A fence of the active lanes: relaxed writes after it release, relaxed reads before it acquire."""
    live, fences = warp.live(), warp.state(Fences)
    if observations := fences.observed.pop(scope, None) if acquires else None:
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
    if not releases:
        return
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


ReleaseState: TypeAlias = tuple[Clock | None, Mapping[tuple[Home, str], Clock], Mapping[int, Flag]]
"""The releases at an address at some time."""


@dataclass(slots=True)
class Releases:
    """The clocks that were released at the addresses of a state space: of scopes with all threads, and those of
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
            if warp.launch.is_widest(reach):
                self._wide[address] = clock.joined(self._wide.get(address))

    def state_of(self, address: int) -> ReleaseState | None:
        """The releases at an address now; None without any."""
        if address not in self._of and address not in self._flags:
            return None
        return self._wide.get(address), dict(self._of.get(address, {})), dict(self._flags.get(address, {}))

    def restore(self, address: int, state: ReleaseState | None) -> None:
        """Makes the releases at an address those of another time."""
        wide, of, flags = state or (None, {}, {})
        self._wide.pop(address, None)
        self._of.pop(address, None)
        self._flags.pop(address, None)
        if wide:
            self._wide[address] = wide
        if of:
            self._of[address] = dict(of)
        if flags:
            self._flags[address] = dict(flags)

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
        wide = warp.launch.is_widest(scope)
        clocks = [self._wide.get(address)] if wide else []
        for (block, reach), clock in releases.items():
            if wide and warp.launch.is_widest(reach):
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
