# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The knowledge of warps: their clocks, as barriers and fences join them, and until when a warp knows the accesses that
the race check keeps as entries.
"""

from bisect import bisect_right
from collections import deque
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....base.target import WARP
from ...engine import NumPyArray
from ..warp import Block, Cluster, Warp
from .clocks import (
    AGENT,
    ASYNC,
    BEYOND_WARP,
    EXECUTED,
    MAX_THREADS,
    OVER,
    SCOPE_CLUSTER,
    SCOPE_CTA,
    SCOPE_GPU,
    SEVERAL,
    SEVERAL_BLOCKS,
    SEVERAL_LANES,
    SEVERAL_WARPS,
    TENSOR_MAPS,
    Clock,
    Entries,
    Own,
    join_clocks,
    later,
)


def horizon(cluster: Cluster, clock: Clock) -> int:
    """A time before which the clock knows all accesses of the cluster. It spares a look at each agent's time."""
    known = int(clock.times[: cluster.threads].min())
    if len(cluster.finished):
        until = later(np.full(len(cluster.finished), cluster.start), clock.times[cluster.threads :])
        unknown = until <= cluster.finished  # an operation has completed that the clock does not know
        if unknown.any():
            known = min(known, int(until[unknown].min()))
    return known


def learn(warp: Warp, clock: Clock | None) -> None:
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


def known(warp: Warp, lanes: NDArray[np.int64] | None = None) -> Clock:
    """The clock of some lanes of a warp, the active ones unless they are given; without their own accesses."""
    if not warp.own:
        return warp.clock
    chosen = set((warp.lane_numbers() if lanes is None else lanes).tolist())
    total = warp.clock
    for own in {id(own): own for lane, own in warp.own.items() if lane in chosen}.values():
        total = total.joined(own.clock)
    return total


def snapshot(warp: Warp, lanes: NDArray[np.int64]) -> Clock:
    """The clock of some lanes of a warp now, their own accesses included; advances the time past these."""
    clock = known(warp, lanes)
    times = clock.times.copy()
    own = times[warp.first_index : warp.first_index + warp.lanes]
    np.maximum(own, warp.seen[lanes].max(axis=0), out=own)
    own[lanes] = warp.launch.tick()
    return Clock(clock.cluster, times, clock.earlier, clock.proxies)


def executed(warp: Warp, lanes: NDArray[np.int64]) -> Clock:
    """The knowledge of some lanes of a warp now, as one that orders no accesses. Accesses that only let bytes be
    overwritten, since a wait of the block's scope saw a peer arrive behind them, are executed, too.
    """
    clock = snapshot(warp, lanes)
    before = replace(clock, proxies=MappingProxyType({})).joined(clock.proxies.get(EXECUTED))
    before = before.joined(clock.proxies.get(OVER))
    return Clock(clock.cluster, np.zeros(0, np.int64), proxies={EXECUTED: before})


def meet_in_exchange(warp: Warp, groups: NDArray[np.bool_] | None) -> None:
    """An exchange of the active lanes, or of each of their `groups`, a row for each lane. It orders no accesses; but
    those before it are executed, as its lanes know.
    """
    if warp.is_several:
        return
    if groups is None:
        learn(warp, executed(warp, warp.lane_numbers()))
        return
    before, live = warp.mask_state(), warp.live()
    for group in np.unique(groups[live], axis=0):
        warp.narrow(group & live)
        learn(warp, executed(warp, warp.lane_numbers()))
        warp.restore(before)


@contextmanager
def knowing_executed(warp: Warp) -> Generator[None]:
    """Within it, the active lanes also know the accesses that they know to be executed, though not to be visible."""
    clock, until, own = warp.clock, warp.horizon, dict(warp.own)
    learn(warp, known(warp).proxies.get(EXECUTED))
    yield
    warp.clock, warp.horizon = clock, until
    warp.own.clear()
    warp.own.update(own)


@contextmanager
def active_only(warp: Warp, indices: NDArray[np.int64]) -> Generator[None]:
    """Within it, only these of the active lanes, by their index among them, are active."""
    before, chosen = warp.mask_state(), np.zeros(warp.lanes, bool)
    chosen[warp.lane_numbers()[indices]] = True
    warp.narrow(chosen)
    yield
    warp.restore(before)


def whole_snapshot(warp: Warp) -> Clock:
    """The clock of all lanes of a warp now."""
    return snapshot(warp, np.arange(warp.lanes))


def meet_warps(arrived: Iterable[Clock], waiting: Iterable[Warp]) -> None:
    """A barrier of some warps: those that wait join the clocks with which all arrived."""
    total = join_clocks(arrived)
    for warp in waiting:
        learn(warp, total)


def meet_block(block: Block) -> None:
    """A barrier of a block: its warps join their clocks, and know all accesses of its threads. Where blocks run in
    step, one of each block that has active lanes.
    """
    if (gang := block.warps[0]).spans_blocks:
        times = gang.clock.times.copy()
        times[gang.lane_numbers()] = now = block.launch.tick()
        gang.clock, gang.horizon = Clock(gang.clock.cluster, times), now if gang.mask is None else times
        return
    total = join_clocks(known(warp, np.arange(warp.lanes)) for warp in block.warps)
    assert total is not None, "a block has warps"
    times = total.times.copy()
    threads = block.cluster.config.threads
    first = block.rank * threads
    times[first : first + threads] = block.launch.tick()
    total = Clock(total.cluster, times, total.earlier, total.proxies)
    until = horizon(block.cluster, total)
    for warp in block.warps:
        warp.clock, warp.horizon = total, until
        warp.own.clear()


def meet_lanes(warp: Warp, lanes: NDArray[np.int64]) -> None:
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


_FENCES_KEPT = 8
"""The last fences of a thread that are kept."""


@dataclass(slots=True, eq=False)
class ProxyFences:
    """The times of the proxy fences of each thread of a cluster, by their memory: accesses before a time are before it.

    Clocks say which writes a fence orders on the way to an access of the async proxy, whoever executes it, since PTX
    asks for no more (PTX ISA, Memory Consistency Model: causality order). CUTLASS lets each thread that has written
    execute one, before the barrier (`tma_store_fence`).
    """

    cluster: Cluster
    _times: dict[tuple[str, int], deque[int]] = field(init=False, default_factory=dict[tuple[str, int], deque[int]])

    def add(self, space: str, agents: Iterable[int], time: int) -> None:
        """Threads execute a fence."""
        for agent in agents:
            self._times.setdefault((space, agent), deque(maxlen=_FENCES_KEPT)).append(time)

    def lacks(self, space: str, agent: int, time: int, until: int) -> bool:
        """Whether a thread has executed none behind its access at a time, among what is known of it, that before
        `until`; False if that is not known.
        """
        times = self._times.get((space, agent), ())
        if len(times) == _FENCES_KEPT and times[0] > time:  # those before it are forgotten
            return False
        return not any(time < fence <= until for fence in times)


def fence_proxy(warp: Warp, spaces: Iterable[str]) -> None:
    """A fence of the active lanes between the proxies: all that they know is before later accesses to these memories by
    the async proxy, or is released to that of tensor maps.
    """
    now = replace(snapshot(warp, warp.lane_numbers()), proxies=MappingProxyType({}))
    _know_proxies(warp, dict.fromkeys(spaces, now))
    for space in spaces:
        warp.block.cluster.state(ProxyFences).add(space, warp.active_agents().tolist(), warp.launch.clock)


def _know_proxies(warp: Warp, proxies: Mapping[str, Clock]) -> None:
    """Adds clocks of proxies to those of the active lanes."""
    learn(warp, Clock(warp.clock.cluster, np.zeros(0, np.int64), proxies=proxies))


def acquired_proxy(address: int) -> str:
    """The proxy of the map at an address, behind the fence that acquires the release."""
    return f"{TENSOR_MAPS} at {address:#x}"


def acquire_map(warp: Warp, address: int) -> None:
    """A fence of the active lanes: their TMA copies see the map at an address as it was released before."""
    if (released := known(warp).proxies.get(TENSOR_MAPS)) is not None:
        _know_proxies(warp, {acquired_proxy(address): released})


def await_launch_before(warp: Warp) -> None:
    """The active lanes know all accesses of the launch before (PTX ISA, griddepcontrol.wait)."""
    cluster, _ = warp.block.cluster.place_of(warp.launch.agent_before)
    own = warp.block.cluster.number, np.zeros(0, np.int64)
    learn(warp, Clock(*own, earlier=MappingProxyType({cluster: np.array([1])})))


def horizon_of(warp: Warp) -> Any:
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
    warp: Warp, lanes: NumPyArray, entries: Entries, over: NDArray[np.bool_] | None = None
) -> NDArray[np.int64]:
    """The time before which active lane `lanes[i]` knows the accesses of the agents that `entries[i]` stands for; of
    those that need only be `over`, that they are.
    """
    until = known_by(warp, warp.clock, lanes, entries)
    numbers = warp.lane_numbers()[lanes] if warp.own else lanes
    for own in {id(own): own for own in warp.own.values()}.values():
        chosen = np.isin(numbers, [lane for lane, other in warp.own.items() if other is own])
        if chosen.any():
            until[chosen] = np.maximum(until[chosen], known_by(warp, own.clock, lanes[chosen], entries[chosen]))
    if over is not None and (ended := known(warp).proxies.get(OVER)) is not None:
        until = np.where(over, np.maximum(until, known_by(warp, ended, lanes, entries)), until)
    return until


def known_by(warp: Warp, clock: Clock, lanes: NumPyArray, entries: Entries) -> NDArray[np.int64]:
    """The time before which active lane `lanes[i]`, with this clock, knows the accesses of `entries[i]`."""
    cluster, times = warp.block.cluster, clock.times
    if len(times) < cluster.threads:
        times = np.concatenate([times, np.zeros(cluster.threads - len(times), np.int64)])
    index = place_of(warp, entries)
    inside = (index >= 0) & (index < len(times))
    if warp.spans_blocks:  # nothing orders blocks
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
    for flag, starts in zip((SEVERAL_LANES, SEVERAL_WARPS, SEVERAL_BLOCKS), cluster.groups.begin, strict=True):
        shared = inside & ~same & ((entries & flag) != 0)
        if shared.any():
            least = np.minimum.reduceat(times[: cluster.threads], starts)
            until[shared] = least[np.searchsorted(starts, index[shared], "right") - 1]
    if clock.earlier and not inside.all():
        others, numbers = np.unique(entries[~inside], return_inverse=True)
        until[~inside] = np.array([_known_earlier(clock, warp, entry) for entry in others.tolist()])[numbers]
    return until


def times_of(clock: Clock, warp: Warp, entries: Entries) -> NDArray[np.int64]:
    """The time before which a clock has the accesses of the agents, one each, that `entries` stand for."""
    index = place_of(warp, entries)
    inside = (index >= 0) & (index < len(clock.times))
    until = np.zeros(len(entries), np.int64)
    until[inside] = clock.times[index[inside]]
    for position in np.flatnonzero(~inside).tolist() if clock.earlier else ():
        until[position] = _known_earlier(clock, warp, int(entries[position]))
    return until


def place_of(warp: Warp, entries: Entries) -> NDArray[np.int64]:
    """The places of agents in the clocks of the warp's cluster; -1 for those of other clusters."""
    cluster = warp.block.cluster
    agent = entries & AGENT
    copy, seat = np.divmod(agent & ~ASYNC, len(warp.launch.begun))
    thread, is_copy = agent - cluster.first_agent, (agent & ASYNC) != 0
    is_own = np.where(is_copy, seat == cluster.seat, (thread >= 0) & (thread < cluster.threads))
    place = np.where(is_copy, cluster.threads + copy, thread)
    return np.where((entries >> 32 >= cluster.start) & is_own, place, -1)


def of_own_block(warp: Warp, blocks: NDArray[np.int64], entries: Entries) -> NDArray[np.bool_]:
    """Which entries belong only to threads of these blocks, given by their ranks in the warp's cluster."""
    thread = (entries & AGENT) - warp.block.cluster.first_agent
    return (thread // warp.block.cluster.config.threads == blocks) & ((entries & SEVERAL_BLOCKS) == 0)


def of_own_warp(warp: Warp, entries: Entries) -> NDArray[np.bool_]:
    """Which entries, in a row for each active lane, belong to threads of its warp."""
    return (place_of(warp, entries) - warp.first_index) // WARP == warp.lane_numbers()[:, None] // WARP


def _known_earlier(clock: Clock, warp: Warp, entry: int) -> int:
    """The time before which a clock has the accesses of a thread of another cluster, or of its warp or block."""
    agent, cluster = entry & AGENT, warp.block.cluster
    if agent & ASYNC:
        copy, seat = divmod(agent & ~ASYNC, len(warp.launch.begun))
        begun = warp.launch.begun[seat]
        number = begun[bisect_right(begun, (entry >> 32, MAX_THREADS)) - 1][1]
        thread = cluster.groups_of(number).threads + copy
    else:
        number, thread = cluster.place_of(agent)
    times = clock.earlier.get(number)
    if not agent or times is None or thread >= len(times):
        return 0
    flags, groups = (SEVERAL_LANES, SEVERAL_WARPS, SEVERAL_BLOCKS), cluster.groups_of(number)
    starts = [starts for flag, starts in zip(flags, groups.begin, strict=True) if entry & flag]
    if not starts:
        return int(times[thread])
    least = np.minimum.reduceat(times[: groups.threads], starts[-1])
    return int(least[np.searchsorted(starts[-1], thread, "right") - 1])


def read_by_several(warp: Warp, earlier: Entries, now: Entries) -> Entries:
    """The entries for reads made now of bytes that others have read, with no order between."""
    place = place_of(warp, earlier)
    threads, lane = warp.block.cluster.config.threads, place - warp.first_index
    same_warp = (
        (lane // WARP == warp.lane_numbers()[:, None] // WARP) & (lane < warp.lanes) & ((earlier & BEYOND_WARP) == 0)
    )
    same_block = (place // threads == warp.blocks[:, None]) & ((earlier & SEVERAL_BLOCKS) == 0)
    same_cluster = (place >= 0) & (place < warp.block.cluster.threads)
    flag = np.where(same_warp, SEVERAL_LANES, np.where(same_block, SEVERAL_WARPS, SEVERAL_BLOCKS))
    return np.bitwise_or(np.where(same_cluster, now, now & ~AGENT), flag)


def beyond_scope(warp: Warp, entries: Entries, scope: str) -> NDArray[np.bool_]:
    """Which entries are of atomic writes whose scope does not have the threads of an atomic access that the active
    lanes make now in a `scope`, or the other way round.
    """
    cluster, place = warp.block.cluster, place_of(warp, entries & ~SEVERAL)
    threads = cluster.config.threads
    cta, within_cluster = (entries & SCOPE_GPU) == SCOPE_CTA, (entries & SCOPE_GPU) == SCOPE_CLUSTER
    same_block = (place >= 0) & (place // threads == warp.block.rank)
    same_cluster = (place >= 0) & (place < cluster.threads)
    bad = ((cta | (scope == "cta")) & ~same_block) | ((within_cluster | (scope == "cluster")) & ~same_cluster)
    if warp.launch.devices > 1:
        device = warp.launch.grids.device_of(warp.launch.grids.place_of(entries & AGENT)[0])
        bad |= (((entries & SCOPE_GPU) == SCOPE_GPU) | (scope == "gpu")) & (device != cluster.grid.device)
    return bad
