# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Vector clocks: up to when a warp, a barrier or an address knows the accesses of each agent.

An agent is a sequence of accesses in a fixed order: those of a thread, or those of asynchronous copies that complete in
order. The simulator executes one access after the other and dates them by one counter, which advances at each event
that orders. So a clock is a time for each agent, and the holder knows the accesses that were made before that time. A
barrier joins the clocks of those who meet; a release leaves a clock at its address, and an acquire takes it from there
(PTX ISA, Memory Consistency Model: causality order, and release and acquire patterns, also those of a fence and a
relaxed operation). The lanes of a warp share a clock; `Warp.seen` adds the knowledge that each lane has of the others.

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

    def _joined_proxies(self, others: "Mapping[str, Clock]") -> "Mapping[str, Clock]":
        if not others or others is self.proxies:
            return self.proxies
        total = dict(self.proxies)
        for space, other in others.items():
            total[space] = total.get(space, Clock(self.cluster, np.zeros(0, np.int64))).joined(other)
        return total


def _later(first: Times, second: Times) -> Times:
    """The later time of each agent, where one clock may be from before some agents opened."""
    longer, shorter = (first, second) if len(first) >= len(second) else (second, first)
    times = longer.copy()
    np.maximum(times[: len(shorter)], shorter, out=times[: len(shorter)])
    return times


def joined(clocks: "Iterable[Clock | None]") -> Clock | None:
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
    """Joins a clock to that of a warp."""
    if clock is not None:
        warp.clock = warp.clock.joined(clock)
        warp.horizon = horizon(warp.block.cluster, warp.clock)


def snapshot(warp: "Warp", lanes: NDArray[np.int64]) -> Clock:
    """The clock of some lanes of a warp now, their own accesses included; advances the time past these."""
    times = warp.clock.times.copy()
    own = times[warp.first_index : warp.first_index + warp.lanes]
    np.maximum(own, warp.seen[lanes].max(axis=0), out=own)
    own[lanes] = warp.launch.tick()
    return Clock(warp.clock.cluster, times, warp.clock.earlier, warp.clock.proxies)


def meet_warps(arrived: "Iterable[Warp]", waiting: "Iterable[Warp]") -> None:
    """A barrier of some warps: those that waited join the clocks of all that arrived, as they were then."""
    total = joined(warp.offered for warp in arrived)
    for warp in waiting:
        learn(warp, total)


def meet_block(block: "Block") -> None:
    """A barrier of a block: its warps join their clocks, and know all accesses of its threads."""
    total = joined(warp.clock for warp in block.warps)
    assert total is not None, "a block has warps"
    times = total.times.copy()
    first = block.rank * block.launch.config.threads
    times[first : first + block.launch.config.threads] = block.launch.tick()
    total = Clock(total.cluster, times, total.earlier, total.proxies)
    known = horizon(block.cluster, total)
    for warp in block.warps:
        warp.clock, warp.horizon = total, known


def meet_lanes(warp: "Warp", lanes: NDArray[np.int64]) -> None:
    """A barrier of lanes of a warp: they join their times, and know all accesses of each other. Of warps in step, all
    lanes of each.
    """
    if warp.is_several:
        warp.seen[lanes] = warp.launch.tick()
        return
    known = warp.seen[lanes].max(axis=0)
    known[lanes] = warp.launch.tick()
    warp.seen[lanes] = known


def fence(warp: "Warp") -> None:
    """A fence of the active lanes: relaxed writes after it release, relaxed reads before it acquire."""
    learn(warp, warp.observed)
    warp.observed = None
    warp.fenced = snapshot(warp, warp.lane_numbers())


def fence_proxy(warp: "Warp", spaces: "Iterable[str]") -> None:
    """A fence of the active lanes between the proxies: all that they know is before later accesses to these memories by
    the async proxy, or is released to that of tensor maps.
    """
    known = replace(snapshot(warp, warp.lane_numbers()), proxies=MappingProxyType({}))
    proxies = dict(warp.clock.proxies)
    for space in spaces:
        proxies[space] = known.joined(proxies.get(space))
    warp.clock = replace(warp.clock, proxies=proxies)


def acquired(address: int) -> str:
    """The proxy of the map at an address, behind the fence that acquires what was released."""
    return f"{TENSOR_MAPS} at {address:#x}"


def acquire_map(warp: "Warp", address: int) -> None:
    """A fence of the active lanes: their tensor copies see the map at an address as it was released before."""
    if (released := warp.clock.proxies.get(TENSOR_MAPS)) is not None:
        name = acquired(address)
        proxies = {**warp.clock.proxies, name: released.joined(warp.clock.proxies.get(name))}
        warp.clock = replace(warp.clock, proxies=proxies)


class Releases:
    """The clocks that were released at the addresses of a state space."""

    def __init__(self) -> None:
        self._at: dict[int, Clock] = {}

    def write(self, warp: "Warp", address: int, lane: int, releases: bool, replaces: bool) -> None:
        """An atomic write by a lane: it leaves the clock of the lane now, or at its last fence.

        A write that reads as well joins the clock that was there: it continues the release sequence.
        """
        left = snapshot(warp, np.array([lane])) if releases else warp.fenced
        before = None if replaces else self._at.get(address)
        if left is not None:
            self._at[address] = left.joined(before)
        elif replaces:
            self._at.pop(address, None)

    def read(self, warp: "Warp", address: int, acquires: bool) -> None:
        """An atomic read: it joins the clock that was left at the address, at once or at the next fence."""
        left = self._at.get(address)
        if left is None:
            return
        if acquires:
            learn(warp, left)
        else:
            warp.observed = warp.clock.joined(left).joined(warp.observed)
