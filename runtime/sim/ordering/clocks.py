# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Vector clocks: up to when a warp, a barrier or an address knows the accesses of each agent.

An agent is a sequence of accesses in a fixed order: those of a thread, or those of asynchronous copies that complete in
order. The simulator executes one access after the other and dates them by one counter, which advances at each event
that orders. So a clock is a time for each agent, and the holder knows the accesses that were made before that time. A
barrier joins the clocks of those who meet; a release leaves a clock at its address, and an acquire takes it from there
(PTX ISA, Memory Consistency Model: causality order, and release and acquire patterns, also those of a fence and a
relaxed operation). The lanes of a warp share a clock; `Warp.seen` adds the knowledge that each lane has of the others,
and `Warp.own` has the clocks that some lanes alone have acquired, until they meet the others.

Accesses of the async proxy come after those by the generic proxy only behind a proxy fence on the way (PTX ISA,
Proxies). So a clock also has a clock of the accesses that are before those of the async proxy. The fence raises it;
who joins clocks joins these, too, so that the fence may stand on either side of a barrier. A kernel without such a
fence has no such clocks.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from ..warp import Block, Cluster, Warp

TENSOR_MAPS = "tensor maps"
"""The proxy by which tensor copies read their maps, where clocks have the accesses that a fence has released to it."""

OVER = "over"
"""Where clocks have the accesses after which bytes may be overwritten, though what those wrote need not be visible."""

EXECUTED = "executed"
"""Where clocks have what threads did before operations of theirs that arrive at mbarriers, and do not release it."""

Times: TypeAlias = NDArray[np.int64]
"""A time for each agent of a cluster. Never changed in place once it belongs to a clock."""


@dataclass(frozen=True, slots=True, eq=False)
class Clock:
    """`times` of the agents of a cluster, the threads first, and of those of other clusters that it has learned of
    `earlier`, by the number of each. An agent that opened after the clock was taken has no time in it. `proxies` has,
    for each memory that a proxy fence was of, the clock for accesses of the async proxy to it.
    """

    cluster: int
    times: Times
    earlier: Mapping[int, Times] = field(default_factory=lambda: MappingProxyType({}))
    proxies: "Mapping[str, Clock]" = field(default_factory=lambda: MappingProxyType({}))

    def joined(self, other: "Clock | None") -> "Clock":
        """All that either knows, as a clock of this one's cluster."""
        if other is None or other is self:
            return self
        proxies = self._joined_proxies(other.proxies)
        if other.cluster == self.cluster:
            times, earlier = _later(self.times, other.times), other.earlier
        else:
            times, earlier = self.times, {**other.earlier, other.cluster: other.times}
            if (own := earlier.pop(self.cluster, None)) is not None:  # of this cluster, by way of the other one
                times = _later(times, own)
        if not earlier:
            return Clock(self.cluster, times, self.earlier, proxies)
        total = dict(self.earlier)
        for cluster, known in earlier.items():
            total[cluster] = _later(total[cluster], known) if cluster in total else known
        return Clock(self.cluster, times, total, proxies)

    def covers(self, other: "Clock | None") -> bool:
        """Whether it knows all accesses of its cluster that another one knows."""
        if other is None:
            return True
        shorter = min(len(self.times), len(other.times))
        return bool((self.times[:shorter] >= other.times[:shorter]).all() and (other.times[shorter:] <= 0).all())

    def _joined_proxies(self, others: "Mapping[str, Clock]") -> "Mapping[str, Clock]":
        if not others or others is self.proxies:
            return self.proxies
        total = dict(self.proxies)
        for space, other in others.items():
            total[space] = total.get(space, Clock(self.cluster, np.zeros(0, np.int64))).joined(other)
        return total


@dataclass(frozen=True, slots=True, eq=False)
class Own:
    """The knowledge of a lane beyond its warp's, and a time before which it knows all accesses of its cluster."""

    clock: Clock
    horizon: int


def _later(first: Times, second: Times) -> Times:
    """The later time of each agent, where one clock may be from before some agents opened."""
    longer, shorter = (first, second) if len(first) >= len(second) else (second, first)
    times = longer.copy()
    np.maximum(times[: len(shorter)], shorter, out=times[: len(shorter)])
    return times


def join_clocks(clocks: "Iterable[Clock | None]") -> Clock | None:
    """All that any of the clocks knows, of one cluster."""
    total: Clock | None = None
    for clock in clocks:
        total = clock if total is None else total.joined(clock)
    return total


def horizon(cluster: "Cluster", clock: Clock) -> int:
    """A time before which the clock knows all accesses of the cluster. It spares a look at each agent's time."""
    known = int(clock.times[: cluster.threads].min())
    if len(cluster.finished):
        until = _later(np.full(len(cluster.finished), cluster.start), clock.times[cluster.threads :])
        unknown = until <= cluster.finished  # an operation has completed that the clock does not know
        if unknown.any():
            known = min(known, int(until[unknown].min()))
    return known


def learn(warp: "Warp", clock: Clock | None) -> None:
    """Joins a clock to those of the active lanes."""
    if clock is None:
        return
    if warp.mask is None:
        warp.clock = warp.clock.joined(clock)
        warp.horizon = horizon(warp.block.cluster, warp.clock)
        return
    cache: dict[int, Own] = {}
    for lane in set(warp.lane_numbers().tolist()):
        before = warp.own.get(lane)
        if id(before) not in cache:
            total = clock if before is None else before.clock.joined(clock)
            cache[id(before)] = Own(total, horizon(warp.block.cluster, warp.clock.joined(total)))
        warp.own[lane] = cache[id(before)]


def known(warp: "Warp", lanes: NDArray[np.int64] | None = None) -> Clock:
    """The clock of some lanes of a warp, the active ones unless they are given; without their own accesses."""
    if not warp.own:
        return warp.clock
    chosen = set((warp.lane_numbers() if lanes is None else lanes).tolist())
    total = warp.clock
    for own in {id(own): own for lane, own in warp.own.items() if lane in chosen}.values():
        total = total.joined(own.clock)
    return total


def snapshot(warp: "Warp", lanes: NDArray[np.int64]) -> Clock:
    """The clock of some lanes of a warp now, their own accesses included; advances the time past these."""
    clock = known(warp, lanes)
    times = clock.times.copy()
    own = times[warp.first_index : warp.first_index + warp.lanes]
    np.maximum(own, warp.seen[lanes].max(axis=0), out=own)
    own[lanes] = warp.launch.tick()
    return Clock(clock.cluster, times, clock.earlier, clock.proxies)


def for_overwriting(clock: Clock) -> Clock:
    """The part of a clock that threads beyond the scope of its release learn: that reads, and writes of bulk copies,
    are over."""
    over = replace(clock, proxies=MappingProxyType({})).joined(clock.proxies.get(OVER))
    executed = {EXECUTED: clock.proxies[EXECUTED]} if EXECUTED in clock.proxies else {}
    return Clock(clock.cluster, np.zeros(0, np.int64), proxies={OVER: over, **executed})


def executed(warp: "Warp", lanes: NDArray[np.int64]) -> Clock:
    """The knowledge of some lanes of a warp now, as one that orders no accesses."""
    clock = snapshot(warp, lanes)
    before = replace(clock, proxies=MappingProxyType({})).joined(clock.proxies.get(EXECUTED))
    return Clock(clock.cluster, np.zeros(0, np.int64), proxies={EXECUTED: before})


def whole_snapshot(warp: "Warp") -> Clock:
    """The clock of all lanes of a warp now."""
    return snapshot(warp, np.arange(warp.lanes))


def meet_warps(arrived: "Iterable[Clock]", waiting: "Iterable[Warp]") -> None:
    """A barrier of some warps: those that wait join the clocks with which all arrived."""
    total = join_clocks(arrived)
    for warp in waiting:
        learn(warp, total)


def meet_block(block: "Block") -> None:
    """A barrier of a block: its warps join their clocks, and know all accesses of its threads. Where blocks run in
    step, one of each block that has active lanes.
    """
    if (gang := block.warps[0]).is_gang:
        times = gang.clock.times.copy()
        times[gang.lane_numbers()] = now = block.launch.tick()
        gang.clock, gang.horizon = Clock(gang.clock.cluster, times), now if gang.mask is None else times
        return
    total = join_clocks(known(warp, np.arange(warp.lanes)) for warp in block.warps)
    assert total is not None, "a block has warps"
    times = total.times.copy()
    first = block.rank * block.launch.config.threads
    times[first : first + block.launch.config.threads] = block.launch.tick()
    total = Clock(total.cluster, times, total.earlier, total.proxies)
    until = horizon(block.cluster, total)
    for warp in block.warps:
        warp.clock, warp.horizon = total, until
        warp.own.clear()


def meet_lanes(warp: "Warp", lanes: NDArray[np.int64]) -> None:
    """A barrier of lanes of a warp: they join their clocks, and know all accesses of each other. Of warps in step, all
    lanes of each.
    """
    if warp.is_several:
        warp.seen[lanes] = warp.launch.tick()
        return
    seen = warp.seen[lanes].max(axis=0)
    seen[lanes] = warp.launch.tick()
    warp.seen[lanes] = seen
    if warp.own:
        learn(warp, join_clocks({id(own): own.clock for lane, own in warp.own.items() if lane in lanes}.values()))
        if warp.mask is None:
            warp.own.clear()


def fence_proxy(warp: "Warp", spaces: "Iterable[str]") -> None:
    """A fence of the active lanes between the proxies: all that they know is before later accesses to these memories by
    the async proxy, or is released to that of tensor maps.
    """
    now = replace(snapshot(warp, warp.lane_numbers()), proxies=MappingProxyType({}))
    _know_proxies(warp, dict.fromkeys(spaces, now))


def _know_proxies(warp: "Warp", proxies: "Mapping[str, Clock]") -> None:
    """Adds clocks of proxies to those of the active lanes."""
    learn(warp, Clock(warp.clock.cluster, np.zeros(0, np.int64), proxies=proxies))


def acquired_proxy(address: int) -> str:
    """The proxy of the map at an address, behind the fence that acquires what was released."""
    return f"{TENSOR_MAPS} at {address:#x}"


def acquire_map(warp: "Warp", address: int) -> None:
    """A fence of the active lanes: their tensor copies see the map at an address as it was released before."""
    if (released := known(warp).proxies.get(TENSOR_MAPS)) is not None:
        _know_proxies(warp, {acquired_proxy(address): released})
