# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Data races: who wrote each byte last and who has read it since, and whether the clocks order two accesses.

An access happens before a later one exactly if both are of one agent, or if the clock of the later one knows the
earlier one (PTX ISA, Memory Consistency Model: causality order). Of atomic writes that nothing orders, the last stands
for all; reads of several threads that nothing orders count as made by all of their warp, block or cluster at the latest
time. The idea of keeping only the last writer, and the last
reader where reads are ordered, is FastTrack's (Flanagan and Freund, PLDI 2009).
"""

from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ....base.target import WARP
from ..memory.arena import WIDTHS

if TYPE_CHECKING:
    from ..warp import Warp
    from .clocks import Clock

AGENT = (1 << 27) - 1
ASYNC = 1 << 26
"""The agent is one of asynchronous operations of a cluster, not a thread of the launch."""
PROXIED = 1 << 27
"""The write was made by the async proxy, for whose later accesses it needs no proxy fence."""
ATOMIC = 1 << 28
"""The access was atomic, so that other atomic ones do not conflict with it."""
_SEVERAL_LANES = 1 << 29
"""More than one lane of the agent's warp has read the byte."""
_SEVERAL_WARPS = 1 << 30
"""Threads of more than one warp of the agent's block have read the byte."""
_SEVERAL_BLOCKS = 1 << 31
"""Threads of more than one block of the agent's cluster have read the byte; of several clusters where it is 0."""
_BEYOND_WARP = _SEVERAL_WARPS | _SEVERAL_BLOCKS
_SEVERAL = _SEVERAL_LANES | _BEYOND_WARP

MAX_THREADS = ASYNC - 1
"""The most threads of a launch that can be told apart."""

Entries = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Conflict:
    """Access number `index` of a request conflicts at byte `byte` with a write, or else a read, of `agent`, made at
    `time`.
    """

    index: int
    byte: int
    agent: int
    time: int
    with_write: bool


class RaceShadow:
    """The last write and the last reads of each granule of an arena: as many bytes as the narrowest access so far.

    Accesses are aligned to their width, so that the bytes of a granule have the same history. An entry is
    `time << 32 | flags | agent`; the agents are the threads of a launch, numbered from 1, and those of asynchronous
    operations; 0 is no access. The last reads are kept in several tables: that of each warp of a block where the shadow
    `forgets`, by a `reset` before each cluster, and otherwise that of each block that runs.
    """

    def __init__(self, size: int, tables: int, space: str) -> None:
        self._granule = WIDTHS[-1]
        self._space = space
        self._forgets = space == "shared"
        self._writes: Entries = np.zeros(size // self._granule, np.int64)
        self._reads: Entries = np.zeros((tables, size // self._granule), np.int64)
        self._latest: Entries = self._reads[0].copy()
        """The latest of the reads in all tables, where these are several."""
        self._view()

    def _view(self) -> None:
        """The tables as rows of each width."""
        counts = {width: width // self._granule for width in WIDTHS if width >= self._granule}
        self._write_rows = {width: self._writes.reshape(-1, count) for width, count in counts.items()}
        self._latest_rows = {width: self._latest.reshape(-1, count) for width, count in counts.items()}
        shape = len(self._reads), -1
        self._read_rows = {width: self._reads.reshape(*shape, count) for width, count in counts.items()}

    def _refine(self, width: int) -> None:
        """Makes the granules as narrow as an access."""
        parts = self._granule // width
        self._writes, self._reads = np.repeat(self._writes, parts), np.repeat(self._reads, parts, 1)
        self._latest = np.repeat(self._latest, parts)
        self._granule = width
        self._view()

    def reset(self) -> None:
        """Forgets all accesses."""
        self._writes[:] = 0
        self._reads[:] = 0
        self._latest[:] = 0

    def by_async(self, rows: NDArray[Any], width: int) -> NDArray[np.bool_]:
        """Which rows the async proxy has written last."""
        return (self._write_rows[width][rows] & PROXIED != 0).all(axis=1)

    def date(self, rows: NDArray[Any], width: int, time: int, agents: NDArray[Any]) -> None:
        """Records a write by `agents` at a time without a check, as when a copy that was checked before
        completes.
        """
        self._write_rows[width][rows] = ((time << 32) | agents)[:, None]

    def attribute(self, warp: "Warp", rows: NDArray[Any], width: int, agent: int) -> None:
        """Records that the atomic writes of rows that the active lanes have just made are those of an asynchronous
        agent of their cluster.
        """
        cluster = warp.block.cluster
        cluster.finished[agent] = warp.launch.clock  # so that no horizon hides them
        self._write_rows[width][rows] = warp.launch.clock << 32 | ATOMIC | cluster.agent_of(agent)

    def _unordered(self, warp: "Warp", entries: Entries, atomic: bool = False) -> NDArray[np.bool_] | None:
        """Which entries are not ordered before the access that the active lanes make now; None if all are. Where that
        is `atomic`, atomic entries need no order.
        """
        if self._forgets:
            bad = entries >= warp.horizon << 32
        elif not entries.any():
            return None
        else:  # accesses of other clusters, too
            before = (entries < warp.block.cluster.start << 32) | ((entries & AGENT) == 0)  # 0 is several clusters
            if len(warp.launch.begun) > 1:
                before |= _place(warp, entries) < 0
            bad = (entries >= warp.horizon << 32) | (before & (entries != 0))
        if atomic:
            bad &= (entries & ATOMIC) == 0
        if not bad.any():
            return None
        chosen, lanes = entries[bad], np.nonzero(bad)[0]
        own = (chosen & (AGENT | _SEVERAL)) == warp.active_agents()[lanes]
        bad[bad] = ~own & (chosen >> 32 >= _known_until(warp, lanes, chosen))
        return bad if bad.any() else None

    def _first_write(self, warp: "Warp", rows: NDArray[Any], width: int, atomic: bool = False) -> Conflict | None:
        """The first conflict of the active lanes' accesses with an earlier write."""
        if width < self._granule:
            self._refine(width)
        entries = self._write_rows[width][rows]
        bad = self._unordered(warp, entries, atomic)
        return None if bad is None else _first(bad, entries, True, width)

    def _first_access(self, warp: "Warp", rows: NDArray[Any], width: int, atomic: bool = False) -> Conflict | None:
        """The first conflict of the active lanes' writes with an earlier access."""
        conflict = self._first_write(warp, rows, width, atomic)
        if conflict is not None:
            return conflict
        tables = self._read_rows[width]
        if len(tables) == 1:
            entries = tables[0, rows]
        elif self._forgets and not (self._latest_rows[width][rows] >= warp.horizon << 32).any():
            return None
        else:  # the reads of one granule in each table stand together
            entries = np.moveaxis(tables[:, rows], 0, 2).reshape(len(rows), -1)
        bad = self._unordered(warp, entries, atomic)
        return None if bad is None else _first(bad, entries, False, width)

    def _own_reads(self, warp: "Warp", rows: NDArray[Any], width: int) -> Entries:
        """The table of the warp's reads. Of those of peers, which few kernels read, each warp of the cluster has a
        table of its own; where that takes too much memory, warps of one number share theirs.
        """
        if not self._forgets:
            cluster, tables = warp.block.cluster, self._read_rows[width]
            return tables[(cluster.seat * cluster.size + warp.block.rank) % len(tables)]
        cluster, warps = warp.block.cluster, len(warp.block.warps)
        bytes = self._writes.size * self._granule
        span, tables = bytes // (cluster.size * width), cluster.size * warps
        is_own = cluster.size == 1 or (rows // span == warp.block.rank).all()
        if is_own or 8 * bytes * tables > warp.launch.budget.bytes // 8:
            return self._read_rows[width][warp.index]
        if len(self._reads) == warps:
            self._reads = np.concatenate([self._reads, np.zeros((tables, self._reads.shape[1]), np.int64)])
            if warps == 1:
                self._latest[:] = self._reads[0]
            self._view()
        return self._read_rows[width][warps * (1 + warp.block.rank) + warp.index]

    def read(self, warp: "Warp", rows: NDArray[Any], width: int) -> Conflict | None:
        """Records that the active lanes read `rows` of `width` bytes; the first conflict with an earlier write."""
        conflict = self._first_write(warp, rows, width)
        if conflict is not None:
            return conflict
        table, own = self._own_reads(warp, rows, width), rows
        if warp.is_several and self._forgets:  # the tables of its warps
            table = self._reads.reshape(-1, width // self._granule)
            own = rows + warp.lane_numbers() // WARP * (self._reads.shape[1] // table.shape[1])
        earlier, now = table[own], warp.stamps()
        concurrent = self._unordered(warp, earlier)
        table[own] = now if concurrent is None else np.where(concurrent, _shared(warp, earlier, now), now)
        shared = ((table[own, 0] ^ now[:, 0]) & AGENT) != 0
        if shared.any():  # lanes of this request read the same bytes
            table[own[shared]] |= _SEVERAL_WARPS if warp.is_several and not self._forgets else _SEVERAL_LANES
        if len(self._reads) > 1:
            self._latest_rows[width][rows] = now
        return None

    def date_reads(self, warp: "Warp", rows: NDArray[Any], width: int, agent: int) -> None:
        """Records that an operation of the active lanes, for each row one, has read these as an agent. There is no
        check, as for `date`.
        """
        table = self._own_reads(warp, rows, width)
        earlier, now = table[rows], np.full((len(rows), 1), warp.launch.clock << 32 | agent)
        concurrent = self._unordered(warp, earlier)
        if concurrent is not None:
            concurrent &= (earlier & (AGENT | _SEVERAL)) != agent
            # an entry has one agent, which cannot stand for copies and threads: nobody counts as knowing both
            shared = now & ~AGENT | _SEVERAL_BLOCKS if agent & ASYNC else _shared(warp, earlier, now)
            now = np.where(concurrent, shared, now)
        table[rows] = now
        if len(self._reads) > 1:
            self._latest_rows[width][rows] = now

    def issue(
        self, warp: "Warp", rows: NDArray[Any], width: int, writes: bool, atomic: bool = False
    ) -> tuple[Conflict, bool] | None:
        """The first conflict of an access of the async proxy that the active lanes start, for each row one; with True
        if the earlier access is ordered before it, but is a write by the generic proxy behind which no fence lies.

        What the operation overwrites may have been read by the generic proxy, without a fence.
        """
        conflict = (self._first_access if writes else self._first_write)(warp, rows, width, atomic)
        if conflict is not None:
            return conflict, False
        conflict = self.unfenced(warp, rows, width, self._space)
        return None if conflict is None else (conflict, True)

    def unfenced(self, warp: "Warp", rows: NDArray[Any], width: int, proxy: str) -> Conflict | None:
        """The first write of rows by the generic proxy behind which lies no fence of a proxy that the active lanes
        know.
        """
        entries = self._write_rows[width][rows]
        bad = (entries != 0) & (entries & PROXIED == 0)
        fenced = warp.clock.proxies.get(proxy)
        if fenced is not None and bad.any():
            chosen = entries[bad]
            bad[bad] = chosen >> 32 >= _times_of(fenced, warp, chosen)
        return _first(bad, entries, True, width) if bad.any() else None

    def update(self, warp: "Warp", rows: NDArray[Any], width: int) -> Conflict | None:
        """Records that the active lanes write `rows` atomically; the first conflict with an earlier access that is not
        atomic.
        """
        conflict = self._first_access(warp, rows, width, atomic=True)
        if conflict is None:
            self._write_rows[width][rows] = warp.stamps() | ATOMIC
        return conflict

    def observe(self, warp: "Warp", rows: NDArray[Any], width: int) -> Conflict | None:
        """Records that the active lanes read `rows` atomically; the first conflict with a write that is not atomic."""
        conflict = self._first_write(warp, rows, width, atomic=True)
        if conflict is not None:
            return conflict
        table = self._own_reads(warp, rows, width)
        earlier, plain = table[rows], warp.stamps()
        now = plain | ATOMIC
        concurrent = self._unordered(warp, earlier)
        if concurrent is None:
            table[rows] = now
        else:  # together they count as a plain read, unless all are atomic
            joined = _shared(warp, earlier, np.where((earlier & ATOMIC) != 0, now, plain))
            table[rows] = np.where(concurrent, joined, now)
        if len(self._reads) > 1:
            self._latest_rows[width][rows] = now
        return None

    def write(self, warp: "Warp", rows: NDArray[Any], width: int) -> Conflict | None:
        """Records that the active lanes write `rows` of `width` bytes; the first conflict with an earlier
        access.
        """
        conflict = self._first_access(warp, rows, width)
        if conflict is not None:
            return conflict
        table, now = self._write_rows[width], warp.stamps()
        table[rows] = now
        lost = table[rows, 0] != now[:, 0]
        if lost.any():  # lanes of this request write the same bytes
            return _first(lost[:, None], table[rows], True, 1)
        return None


def _known_until(warp: "Warp", lanes: NDArray[Any], entries: Entries) -> NDArray[np.int64]:
    """The time before which active lane `lanes[i]` knows the accesses of the agents that `entries[i]` stands for."""
    cluster, times = warp.block.cluster, warp.clock.times
    index = _place(warp, entries)
    here = (index >= 0) & (index < len(times))
    index = np.where(here, index, 0)
    until = np.where(here, times[index], 0)
    lane = index - warp.first_index
    own = warp.lane_numbers()[lanes]
    same = here & (lane // WARP == own // WARP) & (lane < warp.lanes) & ((entries & _BEYOND_WARP) == 0)
    if same.any():
        width = warp.seen.shape[1]
        seen = np.maximum(warp.seen[own], times[warp.first_index :][: warp.lanes].reshape(-1, width)[own // WARP])
        one = seen[np.arange(len(lanes)), np.where(same, lane % WARP, 0)]
        until[same] = np.where((entries & _SEVERAL_LANES) != 0, seen.min(axis=1), one)[same]
    for flag, starts in zip((_SEVERAL_LANES, _SEVERAL_WARPS, _SEVERAL_BLOCKS), cluster.groups, strict=True):
        shared = here & ~same & ((entries & flag) != 0)
        if shared.any():
            least = np.minimum.reduceat(times[: cluster.threads], starts)
            until[shared] = least[np.searchsorted(starts, index[shared], "right") - 1]
    for position in np.flatnonzero(~here).tolist() if warp.clock.earlier else ():
        until[position] = _known_earlier(warp.clock, warp, int(entries[position]))
    return until


def _times_of(clock: "Clock", warp: "Warp", entries: Entries) -> NDArray[np.int64]:
    """The time before which a clock has the accesses of the agents, one each, that `entries` stand for."""
    index = _place(warp, entries)
    here = (index >= 0) & (index < len(clock.times))
    until = np.zeros(len(entries), np.int64)
    until[here] = clock.times[index[here]]
    for position in np.flatnonzero(~here).tolist() if clock.earlier else ():
        until[position] = _known_earlier(clock, warp, int(entries[position]))
    return until


def _place(warp: "Warp", entries: Entries) -> NDArray[np.int64]:
    """The places of agents in the clocks of the warp's cluster; -1 for those of other clusters."""
    cluster = warp.block.cluster
    agent = entries & AGENT
    copy, seat = np.divmod(agent & ~ASYNC, len(warp.launch.begun))
    thread, is_copy = agent - cluster.first_agent, (agent & ASYNC) != 0
    is_own = np.where(is_copy, seat == cluster.seat, (thread >= 0) & (thread < cluster.threads))
    place = np.where(is_copy, cluster.threads + copy, thread)
    return np.where((entries >> 32 >= cluster.start) & is_own, place, -1)


def _known_earlier(clock: "Clock", warp: "Warp", entry: int) -> int:
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
    flags = _SEVERAL_LANES, _SEVERAL_WARPS, _SEVERAL_BLOCKS
    starts = [starts for flag, starts in zip(flags, cluster.groups, strict=True) if entry & flag]
    if not starts:
        return int(times[thread])
    least = np.minimum.reduceat(times[: cluster.threads], starts[-1])
    return int(least[np.searchsorted(starts[-1], thread, "right") - 1])


def _shared(warp: "Warp", earlier: Entries, now: Entries) -> Entries:
    """The entries for reads made now of bytes that others have read, with no order between."""
    place = _place(warp, earlier)
    threads, lane = warp.launch.config.threads, place - warp.first_index
    same_warp = (
        (lane // WARP == warp.lane_numbers()[:, None] // WARP) & (lane < warp.lanes) & ((earlier & _BEYOND_WARP) == 0)
    )
    same_block = (place // threads == warp.block.rank) & ((earlier & _SEVERAL_BLOCKS) == 0)
    same_cluster = (place >= 0) & (place < warp.block.cluster.threads)
    flag = np.where(same_warp, _SEVERAL_LANES, np.where(same_block, _SEVERAL_WARPS, _SEVERAL_BLOCKS))
    return np.bitwise_or(np.where(same_cluster, now, now & ~AGENT), flag)


def _first(conflict: NDArray[np.bool_], entries: Entries, with_write: bool, width: int) -> Conflict:
    index, place = (int(i) for i in np.argwhere(conflict)[0])
    entry = int(entries[index, place])
    return Conflict(index, place * width // conflict.shape[1], entry & AGENT, entry >> 32, with_write)
