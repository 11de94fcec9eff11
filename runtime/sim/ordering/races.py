# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Data races: for each byte, who wrote it last and who has read it since, and whether anything orders two
accesses.

The simulator executes one access after the other, so an access happens before a later one exactly if both are
of one thread, or if a barrier of the block, or a `bar.warp.sync` of both lanes, or a chain of these, lies
between them (PTX ISA, Memory Consistency Model: causality order; there is no ordering between blocks). A
clock that advances at each such event therefore dates every access well enough. The idea of keeping only the
last writer and the last reader where reads are ordered is FastTrack's (Flanagan and Freund, PLDI 2009).
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..memory.arena import WIDTHS
from .knowledge import knows

if TYPE_CHECKING:
    from ..warp import Warp

_AGENT = (1 << 28) - 1
_ATOMIC = 1 << 28
"""The access was atomic, so that other atomic ones do not conflict with it."""
_SEVERAL_LANES = 1 << 29
"""More than one lane of the agent's warp has read the byte."""
_SEVERAL_WARPS = 1 << 30
"""Threads of more than one warp have read the byte."""
_SEVERAL_BLOCKS = 1 << 31
"""Threads of more than one block have read the byte."""
_BEYOND_WARP = _SEVERAL_WARPS | _SEVERAL_BLOCKS
_SEVERAL = _SEVERAL_LANES | _BEYOND_WARP

MAX_THREADS = _AGENT // 2
"""The most threads of a launch that can be told apart: each stands for two agents."""

Entries = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Conflict:
    """Access number `index` of a request conflicts at byte `byte` with a write, or else a read, of thread
    `agent`.
    """

    index: int
    byte: int
    agent: int
    with_write: bool


class RaceShadow:
    """The last write and the last reads of each byte of an arena.

    An entry is `time << 32 | flags | agent`; agents are the threads of a launch, numbered from 1, and then the
    asynchronous copies of each that mbarriers wait for; 0 is no access. The last reads of each warp are kept, or of all
    together where `warps` is 1.
    """

    def __init__(self, size: int, warps: int = 1) -> None:
        self._writes: Entries = np.zeros(size, np.int64)
        self._reads: Entries = np.zeros((warps, size), np.int64)
        self._write_rows = {w: self._writes.reshape(-1, w) for w in WIDTHS}
        self._read_rows = {w: self._reads.reshape(warps, -1, w) for w in WIDTHS}

    def reset(self) -> None:
        """Forgets all accesses."""
        self._writes[:] = 0
        self._reads[:] = 0

    def writer(self, offset: int) -> int:
        """The agent that wrote a byte last; 0 for none."""
        return int(self._writes[offset]) & _AGENT

    def date(self, rows: NDArray[Any], width: int, time: int, agents: NDArray[Any]) -> None:
        """Records a write by `agents` at a time without a check, as when a copy that was checked before
        completes.
        """
        self._write_rows[width][rows] = ((time << 32) | agents)[:, None]

    def _own_reads(self, warp: "Warp", width: int) -> Entries:
        """The table of the warp's reads."""
        tables = self._read_rows[width]
        return tables[warp.index if len(tables) > 1 else 0]

    def _all_reads(self, rows: NDArray[Any], width: int) -> Entries:
        """The last reads of each byte by each warp: those of one byte stand together."""
        tables = self._read_rows[width]
        return tables[0, rows] if len(tables) == 1 else np.moveaxis(tables[:, rows], 0, 2).reshape(len(rows), -1)

    def read(self, warp: "Warp", rows: NDArray[Any], width: int) -> Conflict | None:
        """Records that the active lanes read `rows` of `width` bytes; the first conflict with an earlier
        write.
        """
        writes = self._write_rows[width][rows]
        conflict = _unordered(warp, writes)
        if conflict is not None:
            return _first(conflict, writes, True, width)
        table = self._own_reads(warp, width)
        earlier = table[rows]
        now = warp.stamps()
        entry: Entries = np.broadcast_to(now, earlier.shape)
        concurrent = _unordered(warp, earlier)
        if concurrent is not None:
            other = (earlier & _AGENT) - warp.first_agent
            same_warp = (other >= 0) & (other < warp.lanes) & ((earlier & _BEYOND_WARP) == 0)
            other_block = (earlier >> 32 < warp.block.start) | ((earlier & _SEVERAL_BLOCKS) != 0)
            flag = np.where(other_block, _SEVERAL_BLOCKS, np.where(same_warp, _SEVERAL_LANES, _SEVERAL_WARPS))
            entry = entry | np.where(concurrent, flag, 0)
        table[rows] = entry
        kept = table[rows, 0]
        shared = ((kept ^ now[:, 0]) & _AGENT) != 0
        if shared.any():  # lanes of this request read the same bytes
            table[rows[shared]] |= _SEVERAL_LANES
        return None

    def update(self, warp: "Warp", rows: NDArray[Any], width: int) -> Conflict | None:
        """Records that the active lanes write `rows` atomically; the first conflict with an earlier access that is not
        atomic.
        """
        table = self._write_rows[width]
        for entries, is_write in ((table[rows], True), (self._all_reads(rows, width), False)):
            conflict = _unordered(warp, np.where((entries & _ATOMIC) != 0, 0, entries))
            if conflict is not None:
                return _first(conflict, entries, is_write, width)
        table[rows] = warp.stamps() | _ATOMIC
        return None

    def observe(self, warp: "Warp", rows: NDArray[Any], width: int) -> Conflict | None:
        """Records that the active lanes read `rows` atomically; the first conflict with a write that is not atomic."""
        writes = self._write_rows[width][rows]
        conflict = _unordered(warp, np.where((writes & _ATOMIC) != 0, 0, writes))
        if conflict is not None:
            return _first(conflict, writes, True, width)
        table = self._own_reads(warp, width)
        earlier = table[rows]
        kept = _unordered(warp, np.where((earlier & _ATOMIC) != 0, 0, earlier))  # plain reads that still count
        now = np.broadcast_to(warp.stamps() | _ATOMIC, earlier.shape)
        table[rows] = now if kept is None else np.where(kept, earlier, now)
        return None

    def write(self, warp: "Warp", rows: NDArray[Any], width: int) -> Conflict | None:
        """Records that the active lanes write `rows` of `width` bytes; the first conflict with an earlier
        access.
        """
        table = self._write_rows[width]
        for entries, is_write in ((table[rows], True), (self._all_reads(rows, width), False)):
            conflict = _unordered(warp, entries)
            if conflict is not None:
                return _first(conflict, entries, is_write, width)
        now = warp.stamps()
        table[rows] = now
        lost = table[rows, 0] != now[:, 0]
        if lost.any():  # lanes of this request write the same bytes
            return _first(lost[:, None], table[rows], True, 1)
        return None


def _unordered(warp: "Warp", entries: Entries) -> NDArray[np.bool_] | None:
    """Which entries are not ordered before the access that the active lanes make now; None if all are."""
    time = entries >> 32
    block = warp.block
    bad = (time >= block.epoch) | ((time < block.start) & (entries != 0)) | ((entries & _SEVERAL_BLOCKS) != 0)
    if not bad.any():
        return None
    agent = entries & _AGENT
    bad &= (agent != warp.active_agents()[:, None]) | ((entries & _SEVERAL) != 0)
    if not bad.any():
        return None
    if warp.known:
        bad &= ~_known(warp, entries, bad)
    lane = agent - warp.first_agent
    same_warp = (lane >= 0) & (lane < warp.lanes) & ((entries & _BEYOND_WARP) == 0)
    if same_warp.any():
        seen = warp.active_seen()
        row = np.arange(warp.active)[:, None]
        since = seen[row, np.where(same_warp, lane, 0)]
        since = np.where((entries & _SEVERAL_LANES) != 0, seen.min(axis=1)[:, None], since)
        bad &= ~(same_warp & (time < since))
    return bad if bad.any() else None


def _known(warp: "Warp", entries: Entries, bad: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which of the entries for which `bad` holds the warp knows to have happened before."""
    result = np.zeros(bad.shape, bool)
    values, places = np.unique(entries[bad], return_inverse=True)
    answers: list[bool] = []
    for entry in values.tolist():
        lanes = 1 if not entry & _SEVERAL else 32 if not entry & _BEYOND_WARP else 1 << 31
        answers.append(not entry & _SEVERAL_BLOCKS and knows(warp, entry >> 32, entry & _AGENT, lanes))
    result[bad] = np.array(answers)[places]
    return result


def _first(conflict: NDArray[np.bool_], entries: Entries, with_write: bool, width: int) -> Conflict:
    index, place = (int(i) for i in np.argwhere(conflict)[0])
    return Conflict(index, place * width // conflict.shape[1], int(entries[index, place]) & _AGENT, with_write)
