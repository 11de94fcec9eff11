# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Launches of a stream that may begin before the one before them has ended (CUDA C++ Programming Guide, Programmatic
Dependent Launch). A simulated launch begins when the one before has ended. But results of a launch that executes
griddepcontrol.launch_dependents count as written by it while the next one runs, until griddepcontrol.wait (PTX ISA,
griddepcontrol): only threads that know such a wait know the writes.

Launches of different streams that end one after the other are compared by the bytes that each has accessed.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from ...accesses import READ, READ_ATOMICALLY, WRITTEN, WRITTEN_ATOMICALLY, Accesses, Flags, Piece
from ..launch import LaunchState, Left, Stream
from ..memory.arena import WIDTHS
from ..memory.memories import Memories
from ..preparation import Binding, Grid
from .clocks import ATOMIC, PROXIED, Entries
from .races import RaceShadow


def offer(stream: Stream, launch: LaunchState, spaces: Memories, bindings: Sequence[Binding]) -> None:
    """Records the writes of the last launch of a stream for one that may overlap with it."""
    shadow = spaces.global_.shadow
    for binding in bindings if shadow is not None else ():
        for left in stream.left:
            written = left.within(binding.argument.storage)
            if shadow is not None and written is not None and written.any():
                _date(shadow, binding.offset, written, launch.agent_before)


def _date(shadow: RaceShadow, start: int, written: NDArray[np.bool_], agent: int) -> None:
    """Records writes that are older than a launch, of those bytes from `start` on that are `written`. No access behind
    them lacks a fence of the proxy.
    """
    lead = start % WIDTHS[-1]
    bytes = np.pad(written, (lead, -(lead + len(written)) % WIDTHS[-1]))
    rows = ((width, bytes.reshape(-1, width)) for width in WIDTHS[::-1])
    width, parts = next((width, parts) for width, parts in rows if (parts.all(axis=1) == parts.any(axis=1)).all())
    chosen = (start - lead) // width + np.flatnonzero(parts[:, 0])
    shadow.date(chosen, width, 0, np.full(len(chosen), PROXIED | agent))


def left_by(launch: LaunchState, spaces: Memories, bindings: Sequence[Binding]) -> Iterator[Left]:
    """What a launch has left of its arguments to one that it lets begin, where its writes are known."""
    shadow = spaces.global_.shadow
    if shadow is None or not launch.lets_next_begin:
        return
    width, written, _ = shadow.since(1)
    for binding in bindings:
        raw = binding.argument.storage.view(np.uint8)
        first = binding.offset // width
        inside = written[(written >= first) & (written * width < binding.offset + raw.size)]
        bytes = np.zeros((-(-(binding.offset + raw.size) // width) - first, width), np.bool_)
        bytes[inside - first] = True
        chosen = bytes.reshape(-1)[binding.offset - first * width :][: raw.size]
        if chosen.any():
            content = spaces.global_.arena.data[1][binding.offset :][: raw.size, 0]
            yield Left(binding.argument.storage, content.copy(), chosen.copy())


def accessed_by(grids: Sequence[Grid], spaces: Memories, bindings: Sequence[Binding]) -> Accesses | None:
    """The bytes of the host's memory that launches have accessed; None where they were not looked at."""
    shadow = spaces.global_.shadow
    if shadow is None:
        return None
    names = {id(value): name for grid in grids for name, value in grid.args.items()}
    pieces: dict[tuple[int, int], Piece] = {}
    for binding in bindings:
        raw, name = binding.argument.storage.view(np.uint8), names.get(id(binding.argument), "memory")
        place = raw.ctypes.data, raw.size
        if place not in pieces:
            pieces[place] = Piece(name, raw.ctypes.data, _flags(shadow, binding.offset, raw.size))
    return Accesses.of(pieces.values())


def _flags(shadow: RaceShadow, start: int, size: int) -> Flags:
    """How each byte of an allocation has been accessed since the launch began."""
    granule, writes, reads = shadow.entries(start, start + size)
    flags = np.zeros(len(writes), np.uint8)
    kinds = (writes, WRITTEN, WRITTEN_ATOMICALLY), *((table, READ, READ_ATOMICALLY) for table in reads)
    for entries, plain, atomic in kinds:
        flags |= _of_entries(entries, plain, atomic)
    return np.repeat(flags, granule)[start % granule :][:size]


def _of_entries(entries: Entries, plain: int, atomic: int) -> Flags:
    return np.where(entries >> 32 > 0, np.where(entries & ATOMIC, atomic, plain), 0).astype(np.uint8)
