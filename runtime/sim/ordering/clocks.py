# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Vector clocks: up to when a warp, a barrier or an address knows the accesses of each agent.

An agent is a sequence of accesses in a fixed order: those of a thread, or those of asynchronous copies that complete in
order. The simulator executes one access after the other and dates them by one counter, which advances at each event
that orders. So a clock is a time for each agent, and the holder knows the accesses that were made before that time. A
barrier joins the clocks of those who meet; a release leaves a clock at its address, and an acquire takes it from there
(PTX ISA, Memory Consistency Model: causality order, and release and acquire patterns, also those of a fence and a
relaxed operation). The lanes of a warp share a clock; `Warp.seen` adds the knowledge that each lane has of the others,
and `Warp.own` has the clocks that only some lanes have acquired, until they meet the others.

Accesses of the async proxy come after those by the generic proxy only behind a proxy fence on the way (PTX ISA,
Proxies). So a clock also has a clock of the accesses that are before those of the async proxy. The fence raises it;
who joins clocks joins these, too, so that the fence may stand on either side of a barrier. A kernel without such a
fence has no such clocks.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ....base.spaces import SMEM

TENSOR_MAPS = "tensor maps"
"""The proxy by which TMA copies read their maps, where clocks have the accesses that a fence has released to it."""

OVER = "over"
"""Where clocks have the accesses after which bytes may be overwritten, though their writes need not be visible."""

EXECUTED = "executed"
"""Where clocks have the accesses of threads before their operations that arrive at mbarriers without a release, and
before an exchange in which lanes have taken part together.
"""

TENSOR = "tensor memory"
"""Where clocks have the uses of tensor memory that fences and commits of tcgen05 have published."""

AGENT = (1 << 27) - 1
ASYNC = 1 << 26
"""The agent is one of asynchronous operations of a cluster, not a thread of the launch."""
PROXIED = 1 << 27
"""The write was made by the async proxy, for whose later accesses it needs no proxy fence."""
ATOMIC = 1 << 28
"""The access was atomic, so that other atomic ones do not conflict with it."""
SEVERAL_LANES = 1 << 29
"""More than one lane of the agent's warp has read the byte."""
SEVERAL_WARPS = 1 << 30
"""Threads of more than one warp of the agent's block have read the byte."""
SEVERAL_BLOCKS = 1 << 31
"""Threads of more than one block of the agent's cluster have read the byte; of several clusters where it is 0."""
SCOPE_CTA, SCOPE_CLUSTER = SEVERAL_LANES, SEVERAL_WARPS
SCOPE_GPU = SCOPE_CTA | SCOPE_CLUSTER
"""Flags in the entry of a write that was atomic only among the threads of its block, its cluster, or its device."""
SCOPES: Mapping[str, int] = MappingProxyType({"cta": SCOPE_CTA, "cluster": SCOPE_CLUSTER, "gpu": SCOPE_GPU, "sys": 0})
"""The flags of each scope where there are several devices; with one device, `gpu` has all threads, too."""
MORE = SEVERAL_BLOCKS
"""The flag of an atomic write that covers others, which are kept beside the table."""
BEYOND_WARP = SEVERAL_WARPS | SEVERAL_BLOCKS
SEVERAL = SEVERAL_LANES | BEYOND_WARP

MAX_THREADS = ASYNC - 1
"""The most threads of a launch that can be distinguished."""

Entries: TypeAlias = NDArray[np.int64]
"""Entries of bytes: the lower half has the agent that accessed a byte and the flags above, the upper half the time."""

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
            times, earlier = later(self.times, other.times), other.earlier
        else:
            times, earlier = self.times, {**other.earlier, other.cluster: other.times}
            if (own := earlier.pop(self.cluster, None)) is not None:  # of this cluster, by way of the other one
                times = later(times, own)
        if not earlier:
            return Clock(self.cluster, times, self.earlier, proxies)
        total = dict(self.earlier)
        for cluster, known in earlier.items():
            total[cluster] = later(total[cluster], known) if cluster in total else known
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


def later(first: Times, second: Times) -> Times:
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


def for_overwriting(clock: Clock) -> Clock:
    """The part of a clock that threads beyond the scope of its release learn: that reads, and asynchronous writes, are
    over, and which of these are before accesses of the async proxy to shared memory.
    """
    over = replace(clock, proxies=MappingProxyType({})).joined(clock.proxies.get(OVER))
    kept = {name: clock.proxies[name] for name in (EXECUTED, TENSOR, SMEM.keyword) if name in clock.proxies}
    return Clock(clock.cluster, np.zeros(0, np.int64), proxies={OVER: over, **kept})


@dataclass(frozen=True, slots=True)
class Conflict:
    """Access number `index` of a request conflicts at byte `byte` with a write, or else a read, of `agent`, made at
    `time`, 0 for one of the same request, which was `atomic` or not. Where both are, the scope of one lacks the other's
    thread: `narrow`.
    """

    index: int
    byte: int
    agent: int
    time: int
    with_write: bool
    atomic: bool = False
    narrow: bool = False
    pairs: NDArray[np.int64] = field(default_factory=lambda: np.zeros((0, 2), np.int64), compare=False)
    """All accesses of the request that conflict, each with the agent, where several were looked at together."""


def first_conflict(conflict: NDArray[np.bool_], entries: Entries, with_write: bool, width: int) -> Conflict:
    """The first conflict of a request, whose accesses of `width` bytes find these entries."""
    places = np.argwhere(conflict)
    index, place = places[0].tolist()
    entry = int(entries[index, place])
    byte = place * width // conflict.shape[1]
    pairs = np.stack((places[:, 0], entries[conflict] & (AGENT | SEVERAL)), axis=1)
    return Conflict(index, byte, entry & AGENT, entry >> 32, with_write, bool(entry & ATOMIC), pairs=pairs)


def widened(entries: Entries, parts: int) -> Entries:
    """Repeats each entry. The pages of a large table come with the first access: the tables of an arena have
    guards between its allocations, so that few of their entries are marked.
    """
    marked = np.flatnonzero(entries)
    if 4 * len(marked) > entries.size:
        return np.repeat(entries, parts, -1)
    wide = np.zeros((*entries.shape[:-1], entries.shape[-1] * parts), np.int64)
    wide.reshape(-1, parts)[marked] = entries.reshape(-1)[marked, None]
    return wide
