# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Data races: who wrote each byte last and who has read it since, and whether the clocks order two accesses.

An access happens before a later one exactly if one agent made both, or if the clock of the later one knows the
earlier one (PTX ISA, Memory Consistency Model: causality order). Writes that an atomic one covers in no order are kept
beside it; unordered reads of several threads count as made by all of their warp, block or cluster at the latest time.
Keeping only the last writer, and the last reader of ordered ones, is FastTrack's (Flanagan and Freund, PLDI 2009).
"""

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ....base.target import WARP
from ...engine import NumPyArray
from ..memory.arena import WIDTHS
from .clocks import (
    AGENT,
    ASYNC,
    ATOMIC,
    MORE,
    PROXIED,
    SCOPES,
    SEVERAL,
    SEVERAL_BLOCKS,
    SEVERAL_LANES,
    SEVERAL_WARPS,
    Conflict,
    Entries,
    first_conflict,
    widened,
)
from .knowledge import (
    beyond_scope,
    horizon_of,
    known,
    known_by,
    known_until,
    of_own_block,
    of_own_warp,
    place_of,
    read_by_several,
    times_of,
)

if TYPE_CHECKING:
    from ..warp import Warp
    from .unordered_accesses import ConcurrentReads, CoveredWrites


class RaceShadow:
    """The last write and the last reads of each granule of an arena: its size is that of the narrowest access so far.

    Accesses are aligned to their width, so that the bytes of a granule have the same history. An entry is
    `time << 32 | flags | agent`; the agents are the threads of a launch, numbered from 1, and those of asynchronous
    operations; 0 is none. The last reads are kept in several tables: that of each warp of a block where the shadow
    `forgets`, by a `reset` before each cluster, and otherwise that of each block that runs.
    """

    def __init__(self, size: int, tables: int, space: str, forgets: bool) -> None:
        self._granule = WIDTHS[-1]
        self._space = space
        self._forgets = forgets
        self._writes: Entries = np.zeros(size // self._granule, np.int64)
        self._reads: Entries = np.zeros((tables, size // self._granule), np.int64)
        self._latest: Entries = self._reads[0].copy()
        """The latest of the reads in all tables, where these are several."""
        self._covered: CoveredWrites | None = None
        self._concurrent: ConcurrentReads | None = None
        self._view()

    def _view(self) -> None:
        """The tables as rows of each width."""
        counts = {width: width // self._granule for width in WIDTHS if width >= self._granule}
        self.write_rows = {width: self._writes.reshape(-1, count) for width, count in counts.items()}
        self._latest_rows = {width: self._latest.reshape(-1, count) for width, count in counts.items()}
        shape = len(self._reads), -1
        self._read_rows = {width: self._reads.reshape(*shape, count) for width, count in counts.items()}

    def _refine(self, width: int) -> None:
        """Makes the granules as narrow as an access, if they are wider."""
        if (parts := self._granule // width) < 2:
            return
        self._writes, self._reads, self._latest = (widened(x, parts) for x in (self._writes, self._reads, self._latest))
        self._granule = width
        for more in (self._covered, self._concurrent):
            if more is not None:
                more.refine(parts, width)
        self._view()

    def reset(self) -> None:
        """Forgets all accesses."""
        self._writes[:] = 0
        self._reads[:] = 0
        self._latest[:] = 0
        self._covered = self._concurrent = None

    def written(self, rows: NumPyArray, width: int) -> NDArray[np.bool_]:
        """Which rows have been written since the shadow began."""
        self._refine(width)
        return (self.write_rows[width][rows] != 0).any(axis=1)

    def since(self, time: int) -> tuple[int, NDArray[np.int64], NDArray[np.int64]]:
        """The bytes of a granule, and those granules that have been written and read since a time."""
        written, read = self._writes >= time << 32, (self._reads >= time << 32).any(axis=0)
        return self._granule, np.flatnonzero(written), np.flatnonzero(read)

    def entries(self, first: int, end: int) -> tuple[int, Entries, Entries]:
        """The bytes of a granule, and the last writes and reads of the granules that have the bytes of a range."""
        rows = slice(first // self._granule, -(-end // self._granule))
        return self._granule, self._writes[rows], self._reads[:, rows]

    def by_async(self, rows: NumPyArray, width: int) -> NDArray[np.bool_]:
        """Which rows the async proxy has written last."""
        return (self.write_rows[width][rows] & PROXIED != 0).all(axis=1)

    def date(self, rows: NumPyArray, width: int, time: int, agents: NumPyArray) -> None:
        """Records a write by `agents` at a time without a check, as when a copy that was checked completes."""
        self._refine(width)
        self.write_rows[width][rows] = ((time << 32) | agents)[:, None]

    def attribute(self, warp: "Warp", rows: NumPyArray, width: int, agent: int) -> None:
        """Records that the atomic writes of rows that the active lanes have just made are those of an asynchronous
        agent of their cluster.
        """
        cluster = warp.block.cluster
        cluster.finished[agent] = warp.launch.clock  # so that no horizon hides them
        self.write_rows[width][rows] = warp.launch.clock << 32 | ATOMIC | cluster.agent_of(agent)

    def _unordered(
        self, warp: "Warp", entries: Entries, atomic: bool = False, over: "NDArray[np.bool_] | None" = None
    ) -> NDArray[np.bool_] | None:
        """Which entries are not ordered before the access that the active lanes make now; None if all are. Where that
        is `atomic`, atomic entries need no order; those that are `over` need only be that, not visible.
        """
        horizon = horizon_of(warp)
        if self._forgets:
            bad = entries >= horizon << 32
        elif not entries.any():
            return None
        else:  # accesses of other clusters, too
            before = (entries < warp.block.cluster.start << 32) | ((entries & AGENT) == 0)  # 0 is several clusters
            if len(warp.launch.begun) > 1:
                before |= place_of(warp, entries) < 0
            if warp.spans_blocks:
                before |= ~of_own_block(warp, warp.blocks[:, None], entries)
            bad = (entries >= horizon << 32) | (before & (entries != 0))
        if atomic:
            bad &= (entries & ATOMIC) == 0
        if not bad.any():
            return None
        chosen, lanes = entries[bad], np.nonzero(bad)[0]
        own = (chosen & (AGENT | SEVERAL)) == warp.active_agents()[lanes]
        bad[bad] = ~own & (chosen >> 32 >= known_until(warp, lanes, chosen, over if over is None else over[bad]))
        return bad if bad.any() else None

    def _first_write(
        self, warp: "Warp", rows: NumPyArray, width: int, atomic: bool = False, scope: str = "gpu", over: bool = False
    ) -> Conflict | None:
        """The first conflict of the active lanes' accesses with an earlier write. Where it is `over`written, that of an
        asynchronous operation need only be over.
        """
        self._refine(width)
        entries = self.write_rows[width].take(rows, axis=0)
        ended = (entries & (PROXIED | ASYNC)) != 0 if over else None
        bad = self._unordered(warp, entries & ~SEVERAL, atomic, ended)
        if bad is not None:
            return first_conflict(bad, entries, True, width)
        if not (entries & SEVERAL).any() and warp.launch.is_widest(scope):
            return None
        conflict = None
        if self._covered is not None and (entries & MORE).any():
            conflict = self._covered.first_unordered(warp, rows, entries, atomic, self._granule)
        if conflict is not None or not atomic or (unordered := self._unordered(warp, entries & ~SEVERAL)) is None:
            return conflict
        bad = beyond_scope(warp, entries, scope) & unordered
        return replace(first_conflict(bad, entries, True, width), narrow=True) if bad.any() else None

    def _first_access(
        self, warp: "Warp", rows: NumPyArray, width: int, atomic: bool = False, scope: str = "gpu"
    ) -> Conflict | None:
        """The first conflict of the active lanes' writes with an earlier access."""
        if (conflict := self._first_write(warp, rows, width, atomic, scope, over=True)) is not None:
            return conflict
        tables = self._read_rows[width]
        if len(tables) == 1:
            entries = tables[0, rows]
        elif self._forgets and not (self._latest_rows[width][rows] >= horizon_of(warp) << 32).any():
            return None
        else:  # the reads of one granule in each table stand together
            entries = np.moveaxis(tables[:, rows], 0, 2).reshape(len(rows), -1)
        bad = self._unordered(warp, entries, atomic, np.ones(entries.shape, bool))
        if bad is None:
            if self._concurrent is None:
                return None
            return self._concurrent.first_unordered(warp, rows, width, self._granule)
        conflict = first_conflict(bad, entries, False, width)
        return replace(conflict, byte=conflict.byte // self._granule * self._granule)

    def _keep_concurrent(
        self, warp: "Warp", rows: NumPyArray, earlier: Entries, concurrent: "NDArray[np.bool_] | None"
    ) -> None:
        from .unordered_accesses import ConcurrentReads

        self._concurrent = self._concurrent or ConcurrentReads(self._unordered)
        self._concurrent.keep(warp, rows, earlier, concurrent, self._granule)

    def _cover(self, warp: "Warp", rows: NumPyArray, entries: Entries, reads: bool) -> NDArray[np.bool_]:
        from .unordered_accesses import CoveredWrites

        self._covered = self._covered or CoveredWrites(self._unordered, self._forgets)
        return self._covered.cover(warp, rows, entries, reads, self._granule)

    def _own_reads(self, warp: "Warp", rows: NumPyArray, width: int) -> Entries:
        """The table of the warp's reads. Each warp of the cluster has its own table for reads of peers' memory, which
        few kernels read; where that takes too much memory, warps of one number share theirs.
        """
        if not self._forgets:
            first, tables = warp.block.cluster.seat * warp.launch.grids.most_blocks, self._read_rows[width]
            return tables[(first + warp.block.rank) % len(tables)]
        grids = warp.launch.grids  # of several, the memory and the tables are those of the largest cluster and block
        most = warp.block.cluster.size if grids.is_single else grids.most_blocks
        warps = len(warp.block.warps) if grids.is_single else grids.most_warps
        bytes, tables = self._writes.size * self._granule, most * warps
        span = bytes // (most * width)
        is_own = most == 1 or (rows // span == warp.block.rank).all()
        if is_own or 8 * bytes * tables > warp.launch.budget.bytes // 8:
            return self._read_rows[width][warp.index]
        if len(self._reads) == warps:
            self._reads = np.concatenate([self._reads, np.zeros((tables, self._reads.shape[1]), np.int64)])
            if warps == 1:
                self._latest[:] = self._reads[0]
            self._view()
        return self._read_rows[width][warps * (1 + warp.block.rank) + warp.index]

    def read(self, warp: "Warp", rows: NumPyArray, width: int) -> Conflict | None:
        """Records that the active lanes read `rows` of `width` bytes; the first conflict with an earlier write."""
        if (conflict := self._first_write(warp, rows, width)) is not None:
            return conflict
        table, own = self._own_reads(warp, rows, width), rows
        if warp.is_several and self._forgets:  # the tables of its warps
            table = self._reads.reshape(-1, width // self._granule)
            own = rows + warp.lane_numbers() // WARP % len(self._reads) * (self._reads.shape[1] // table.shape[1])
        earlier, now = table.take(own, axis=0), warp.stamps()
        concurrent = self._unordered(warp, earlier)
        if concurrent is not None and (of_copies := concurrent & (earlier & ASYNC != 0)).any():
            self._keep_concurrent(warp, rows, earlier, of_copies)
            concurrent &= ~of_copies
        table[own] = now if concurrent is None else np.where(concurrent, read_by_several(warp, earlier, now), now)
        shared = ((table[own, 0] ^ now[:, 0]) & AGENT) != 0
        if shared.any():  # lanes of this request read the same bytes
            last = table[own[shared]]
            if warp.is_several and not self._forgets:
                is_own = of_own_block(warp, warp.blocks[shared][:, None], last)
                table[own[shared]] |= np.where(is_own, SEVERAL_WARPS, SEVERAL_BLOCKS)
            else:
                table[own[shared]] = last | SEVERAL_LANES
        if len(self._reads) > 1:
            self._latest_rows[width][rows] = now
        return None

    def date_reads(self, warp: "Warp", rows: NumPyArray, width: int, agent: int, each: bool = False) -> None:
        """Records that an asynchronous operation of each active lane has read a row as an agent, without a check. Where
        `each` read of the rows is kept, which takes time, a write that knows each of them is ordered after all.
        """
        table = self._own_reads(warp, rows, width)
        earlier, now = table[rows], np.full((len(rows), 1), warp.launch.clock << 32 | PROXIED | agent)
        if (concurrent := self._unordered(warp, earlier)) is not None:
            concurrent &= (earlier & (AGENT | SEVERAL)) != agent
        if each:
            self._keep_concurrent(warp, rows, earlier, concurrent)
        elif concurrent is not None:
            shared = now & ~AGENT | SEVERAL_BLOCKS if agent & ASYNC else read_by_several(warp, earlier, now)
            now = np.where(concurrent, shared, now)
        table[rows] = now
        if len(self._reads) > 1:
            self._latest_rows[width][rows] = now

    def issue(
        self, warp: "Warp", rows: NumPyArray, width: int, writes: bool, atomic: bool = False
    ) -> tuple[Conflict, bool] | None:
        """The first conflict of an access of the async proxy that the active lanes start, for each row one; with True
        if the earlier access is ordered before it, but is a write by the generic proxy behind which no fence lies.

        The generic proxy may have read the overwritten bytes, without a fence.
        """
        conflict = (self._first_access if writes else self._first_write)(warp, rows, width, atomic)
        if conflict is not None:
            return conflict, False
        conflict = self.unfenced(warp, rows, width, self._space)
        return None if conflict is None else (conflict, True)

    def unfenced(self, warp: "Warp", rows: NumPyArray, width: int, proxy: str) -> Conflict | None:
        """The first write of rows by the generic proxy behind which the active lanes know no fence of a proxy."""
        entries = self.write_rows[width][rows]
        bad = (entries != 0) & (entries & PROXIED == 0)
        fenced = known(warp).proxies.get(proxy)
        if fenced is not None and bad.any():
            chosen = entries[bad]
            bad[bad] = chosen >> 32 >= times_of(fenced, warp, chosen)
        return first_conflict(bad, entries, True, width) if bad.any() else None

    def released_unfenced(self, warp: "Warp", rows: NumPyArray, width: int, own: bool = False) -> Conflict | None:
        """The first read of rows by the generic proxy, of other warps than that of the active lanes, or of its `own`
        lanes, too, behind which lies no fence of the proxy that these know.
        """
        tables = self._read_rows[width][:, rows]
        entries = np.moveaxis(tables, 0, 2).reshape(len(rows), -1)
        bad = (entries & (AGENT | SEVERAL) != 0) & (entries & PROXIED == 0)
        bad &= own | ~of_own_warp(warp, entries)
        fenced = known(warp).proxies.get(self._space)
        if fenced is not None and bad.any():
            chosen, lanes = entries[bad], np.nonzero(bad)[0]
            bad[bad] = chosen >> 32 >= known_by(warp, fenced, lanes, chosen)
        if not bad.any():
            return None
        conflict = first_conflict(bad, entries, False, width)
        return replace(conflict, byte=conflict.byte // self._granule * self._granule)

    def update(
        self, warp: "Warp", rows: NumPyArray, width: int, scope: str = "gpu", reads: bool = False
    ) -> Conflict | None:
        """Records that the active lanes write `rows` atomically in a scope; the first conflict with an earlier access
        that is not atomic, or not in that scope. An operation that `reads` as well comes after the atomic writes that
        it finds, and so do the accesses after it (PTX ISA, Memory Consistency Model: observation order).
        """
        conflict = self._first_access(warp, rows, width, True, scope)
        if conflict is None:
            table = self.write_rows[width]
            more = self._cover(warp, rows, table[rows], reads)
            flags = ATOMIC | (0 if warp.launch.is_widest(scope) else SCOPES[scope])
            table[rows] = np.where(more, MORE, 0) | warp.stamps() | flags
        return conflict

    def observe(self, warp: "Warp", rows: NumPyArray, width: int, scope: str = "gpu") -> Conflict | None:
        """Records that the active lanes read `rows` atomically in a scope; the first conflict with a write that is not
        atomic, or not in that scope. In shared memory `sys` is that of volatile accesses, which order no lanes.
        """
        if (conflict := self._first_write(warp, rows, width, True, scope)) is not None:
            return conflict
        if scope == "sys" and self._forgets:
            bad = self._unordered(warp, entries := self.write_rows[width][rows] & ~SEVERAL)
            if bad is not None and (bad := bad & of_own_warp(warp, entries)).any():
                return first_conflict(bad, entries, True, width)
        table = self._own_reads(warp, rows, width)
        earlier, plain = table[rows], warp.stamps()
        now = plain | ATOMIC
        concurrent = self._unordered(warp, earlier)
        if concurrent is None:
            table[rows] = now
        else:  # together they count as a plain read, unless all are atomic
            joined = read_by_several(warp, earlier, np.where((earlier & ATOMIC) != 0, now, plain))
            table[rows] = np.where(concurrent, joined, now)
        if len(self._reads) > 1:
            self._latest_rows[width][rows] = now
        return None

    def write(self, warp: "Warp", rows: NumPyArray, width: int) -> Conflict | None:
        """Records that the active lanes write `rows` of `width` bytes; the first conflict with an earlier access."""
        conflict = self._first_access(warp, rows, width)
        if conflict is not None:
            return conflict
        table, now = self.write_rows[width], warp.stamps()
        table[rows] = now
        lost = table[rows, 0] != now[:, 0]
        if lost.any():  # lanes of this request write the same bytes
            return replace(first_conflict(lost[:, None], table[rows][:, :1], True, 1), time=0)
        return None
