# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The entries of the race check: which agent has accessed a byte when, and until when a warp knows its accesses."""

from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ....base.target import WARP
from .clocks import OVER, Clock, known

if TYPE_CHECKING:
    from ..warp import Warp

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
"""In the entry of a write: it was atomic among the threads of its block, or of its cluster, only."""
MORE = SEVERAL_BLOCKS
"""In the entry of an atomic write: it covers others, which are kept beside the table."""
BEYOND_WARP = SEVERAL_WARPS | SEVERAL_BLOCKS
SEVERAL = SEVERAL_LANES | BEYOND_WARP

MAX_THREADS = ASYNC - 1
"""The most threads of a launch that can be distinguished."""

Entries = NDArray[np.int64]


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


def horizon_of(warp: "Warp") -> Any:
    """A time before which all active lanes know all accesses of their cluster; where blocks run in step, maybe one for
    each, an array (active, 1).
    """
    if not isinstance(warp.horizon, int):
        return warp.select(warp.horizon)[:, None]
    if warp.own and warp.active and warp.active_lanes is not None and warp.active_lanes[0] == warp.active_lanes[-1]:
        own = warp.own.get(int(warp.active_lanes[0]))
        return warp.horizon if own is None else max(own.horizon, warp.horizon)
    return warp.horizon


def known_until(
    warp: "Warp", lanes: NDArray[Any], entries: Entries, over: "NDArray[np.bool_] | None" = None
) -> NDArray[np.int64]:
    """The time before which active lane `lanes[i]` knows the accesses of the agents that `entries[i]` stands for; of
    those that need only be `over`, that they are.
    """
    until = _known_by(warp, warp.clock, lanes, entries)
    numbers = warp.lane_numbers()[lanes] if warp.own else lanes
    for own in {id(own): own for own in warp.own.values()}.values():
        chosen = np.isin(numbers, [lane for lane, other in warp.own.items() if other is own])
        if chosen.any():
            until[chosen] = np.maximum(until[chosen], _known_by(warp, own.clock, lanes[chosen], entries[chosen]))
    if over is not None and (ended := known(warp).proxies.get(OVER)) is not None:
        until = np.where(over, np.maximum(until, _known_by(warp, ended, lanes, entries)), until)
    return until


def _known_by(warp: "Warp", clock: Clock, lanes: NDArray[Any], entries: Entries) -> NDArray[np.int64]:
    """The time before which active lane `lanes[i]`, with this clock, knows the accesses of `entries[i]`."""
    cluster, times = warp.block.cluster, clock.times
    if len(times) < cluster.threads:
        times = np.concatenate([times, np.zeros(cluster.threads - len(times), np.int64)])
    index = place_of(warp, entries)
    inside = (index >= 0) & (index < len(times))
    if warp.is_gang:  # nothing orders blocks
        inside &= of_own_block(warp, warp.blocks[lanes], entries)
    index = np.where(inside, index, 0)
    until = np.where(inside, times[index], 0)
    lane = index - warp.first_index
    own = warp.lane_numbers()[lanes]
    same = inside & (lane // WARP == own // WARP) & (lane < warp.lanes) & ((entries & BEYOND_WARP) == 0)
    if same.any():
        width = warp.seen.shape[1]
        seen = np.maximum(warp.seen[own], times[warp.first_index :][: warp.lanes].reshape(-1, width)[own // WARP])
        own_entry = seen[np.arange(len(lanes)), np.where(same, lane % WARP, 0)]
        until[same] = np.where((entries & SEVERAL_LANES) != 0, seen.min(axis=1), own_entry)[same]
    for flag, starts in zip((SEVERAL_LANES, SEVERAL_WARPS, SEVERAL_BLOCKS), cluster.groups, strict=True):
        shared = inside & ~same & ((entries & flag) != 0)
        if shared.any():
            least = np.minimum.reduceat(times[: cluster.threads], starts)
            until[shared] = least[np.searchsorted(starts, index[shared], "right") - 1]
    for position in np.flatnonzero(~inside).tolist() if clock.earlier else ():
        until[position] = _known_earlier(clock, warp, int(entries[position]))
    return until


def times_of(clock: Clock, warp: "Warp", entries: Entries) -> NDArray[np.int64]:
    """The time before which a clock has the accesses of the agents, one each, that `entries` stand for."""
    index = place_of(warp, entries)
    inside = (index >= 0) & (index < len(clock.times))
    until = np.zeros(len(entries), np.int64)
    until[inside] = clock.times[index[inside]]
    for position in np.flatnonzero(~inside).tolist() if clock.earlier else ():
        until[position] = _known_earlier(clock, warp, int(entries[position]))
    return until


def place_of(warp: "Warp", entries: Entries) -> NDArray[np.int64]:
    """The places of agents in the clocks of the warp's cluster; -1 for those of other clusters."""
    cluster = warp.block.cluster
    agent = entries & AGENT
    copy, seat = np.divmod(agent & ~ASYNC, len(warp.launch.begun))
    thread, is_copy = agent - cluster.first_agent, (agent & ASYNC) != 0
    is_own = np.where(is_copy, seat == cluster.seat, (thread >= 0) & (thread < cluster.threads))
    place = np.where(is_copy, cluster.threads + copy, thread)
    return np.where((entries >> 32 >= cluster.start) & is_own, place, -1)


def of_own_block(warp: "Warp", blocks: NDArray[np.int64], entries: Entries) -> NDArray[np.bool_]:
    """Which entries are of threads of these blocks alone, in the warp's cluster and by their ranks."""
    thread = (entries & AGENT) - warp.block.cluster.first_agent
    return (thread // warp.launch.config.threads == blocks) & ((entries & SEVERAL_BLOCKS) == 0)


def _known_earlier(clock: Clock, warp: "Warp", entry: int) -> int:
    """The time before which a clock has the accesses of a thread of another cluster, or of its warp or block."""
    agent, cluster = entry & AGENT, warp.block.cluster
    if agent & ASYNC:
        copy, seat = divmod(agent & ~ASYNC, len(warp.launch.begun))
        begun = warp.launch.begun[seat]
        number = begun[bisect_right(begun, (entry >> 32, MAX_THREADS)) - 1][1]
        thread = cluster.threads + copy
    else:
        number, thread = divmod(agent - 1, cluster.threads)
    times = clock.earlier.get(number)
    if not agent or times is None or thread >= len(times):
        return 0
    flags = SEVERAL_LANES, SEVERAL_WARPS, SEVERAL_BLOCKS
    starts = [starts for flag, starts in zip(flags, cluster.groups, strict=True) if entry & flag]
    if not starts:
        return int(times[thread])
    least = np.minimum.reduceat(times[: cluster.threads], starts[-1])
    return int(least[np.searchsorted(starts[-1], thread, "right") - 1])


def read_by_several(warp: "Warp", earlier: Entries, now: Entries) -> Entries:
    """The entries for reads made now of bytes that others have read, with no order between."""
    place = place_of(warp, earlier)
    threads, lane = warp.launch.config.threads, place - warp.first_index
    same_warp = (
        (lane // WARP == warp.lane_numbers()[:, None] // WARP) & (lane < warp.lanes) & ((earlier & BEYOND_WARP) == 0)
    )
    same_block = (place // threads == warp.blocks[:, None]) & ((earlier & SEVERAL_BLOCKS) == 0)
    same_cluster = (place >= 0) & (place < warp.block.cluster.threads)
    flag = np.where(same_warp, SEVERAL_LANES, np.where(same_block, SEVERAL_WARPS, SEVERAL_BLOCKS))
    return np.bitwise_or(np.where(same_cluster, now, now & ~AGENT), flag)
