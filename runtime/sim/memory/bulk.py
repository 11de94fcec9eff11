# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Accesses of bulk copies: bytes that the async proxy reads or writes, contiguous ones as rows of 16 bytes.

While a lane's access is checked, the warp is spread: the lane stands for one lane per row of the access.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ....base.errors import Code
from ....base.spaces import Traffic
from ....base.target import BANK_BYTES, BANKS, SECTOR_BYTES
from ....dialects.ptx import BULK_UNIT
from ...engine import NumPyArray
from ..ordering.asynchronous import AsyncOperation
from ..ordering.clocks import AGENT, PROXIED, SEVERAL, Conflict, Entries, first_conflict
from ..ordering.knowledge import ProxyFences, known, times_of
from ..warp import Warp
from .arena import READY, UNWRITTEN, Access, Bytes
from .refusals import out_of_bounds, race
from .spaces import Space

_PASS = BANKS * BANK_BYTES


def rows_of(space: Space, warp: Warp, access: Access, lane: int, address: int, size: int, reads: bool) -> NumPyArray:
    """The rows of `size` bytes at `address`, an access of a lane; it is counted. SimulationError if address or size
    is not a multiple of 16 (E3203), and for bytes beyond the memory (E3202).
    """
    check_aligned(space, warp, access, lane, address)
    if size % BULK_UNIT:
        text = f"the size of a bulk copy is {size} bytes, which is not a multiple of {BULK_UNIT}"
        warp.fault(Code.SIM_MISALIGNED, access.site, lane, text, f"copy a multiple of {BULK_UNIT} bytes")
    # the first row beyond the memory is a fault, so that later rows need no place, whatever the size of the copy
    end = min(address + size, max(address, space.base + space.arena.span) + BULK_UNIT)
    return rows_at(space, warp, access, lane, np.arange(address, end, BULK_UNIT), reads)


def check_aligned(space: Space, warp: Warp, access: Access, lane: int, address: int) -> None:
    """SimulationError (E3203) for an address of a lane that is not a multiple of 16."""
    if address % BULK_UNIT:
        text = f"the {space.name} address {space.show(address)} of a bulk copy is not a multiple of {BULK_UNIT} bytes"
        warp.fault(Code.SIM_MISALIGNED, access.site, lane, text, "align the tensor, and the strides of its layout")


def rows_at(
    space: Space, warp: Warp, access: Access, lane: int, addresses: NDArray[np.int64], reads: bool
) -> NumPyArray:
    """The rows of the access's width at some addresses, an access of a lane; it is counted. SimulationError (E3202) for
    bytes beyond the memory.
    """
    offsets, width = addresses - space.base, access.width
    beyond = (offsets < 0) | (offsets + width > space.arena.span)
    if beyond.any():
        warp.spread(lane, 1)
        out_of_bounds(space, warp, access, 0, int(addresses[beyond.argmax()]), loading=reads)
    count(space, access, offsets, width)
    rows = offsets // width
    return rows + warp.block.rank * (space.arena.span // width) if space.in_block else rows


def count(space: Space, access: Access, offsets: NDArray[np.int64], width: int) -> None:
    """Counts the access of a lane to `width` bytes at each of some offsets."""
    size = len(offsets) * width
    match space.row.traffic:
        case Traffic.WAVEFRONTS:
            granule = _PASS
        case Traffic.SECTORS:
            granule = SECTOR_BYTES
        case Traffic.UNCOUNTED:
            return
    access.requests += 1
    access.threads += -(-size // BULK_UNIT)
    access.transactions += len(np.unique(offsets // granule))
    access.minimum += -(-size // granule)


def read(space: Space, warp: Warp, access: Access, lane: int, rows: NumPyArray) -> Bytes:
    """The bytes of rows of the access's width that a copy of the lane reads, an array (rows, width). The faults of
    `Space.load`, and E3216.
    """
    return content_of(space, access.width, rows, check_read(space, warp, access, lane, rows))


def check_read(space: Space, warp: Warp, access: Access, lane: int, rows: NumPyArray) -> int | None:
    """Checks that the async proxy may read rows for the lane; returns the values of their undefined bytes, if there are
    any. The faults of `read`.
    """
    before = warp.mask_state()
    warp.spread(lane, len(rows))
    states = space.arena.state[access.width][rows]
    if space.journal is not None:
        space.journal.see(space.name, warp, access.site, rows, access.width, writes=False)
    missing = None if (states == READY).all() else space.undefined(warp, access, rows)
    _check_order(space, warp, access, rows, writes=False)
    warp.restore(before)
    return missing


def content_of(space: Space, width: int, rows: NumPyArray, missing: int | None) -> Bytes:
    """The bytes of rows, an array (rows, width), with `missing` for those that are undefined."""
    content = space.arena.data[width][rows]
    if missing is not None:
        content[space.arena.state[width][rows] == UNWRITTEN] = missing
    return content


def claim(
    space: Space,
    warp: Warp,
    access: Access,
    lane: int,
    rows: NumPyArray,
    content: Bytes,
    swizzle: int | None = None,
    origins: NDArray[np.int64] | None = None,
    packing: int = 0,
) -> None:
    """Checks that a copy of the lane may write bytes to rows. The faults of `Space.store`, and E3216. In shared memory
    the `swizzle` of a TMA copy, by its bits, the places from which it brings the rows, and the `packing` of narrow
    elements (`boxes.packing_of`) are noted.
    """
    before = warp.mask_state()
    warp.spread(lane, len(rows))
    space.check_writable(warp, access, rows)
    _check_order(space, warp, access, rows, writes=True)
    if not space.in_block:
        warp.note(access.site, "stores", content)
    else:
        _remark_unfenced(space, warp, access, rows)
        units = rows * access.width // BULK_UNIT
        space.swizzles[units] = 0 if swizzle is None else 1 + swizzle
        space.origins[units] = 0 if origins is None else origins
        space.packings[units] = packing
    warp.restore(before)


def _remark_unfenced(space: Space, warp: Warp, access: Access, rows: NumPyArray) -> None:
    """A remark on a copy over bytes that threads have read, if no proxy fence follows the read. By the PTX ISA (Memory
    Consistency Model: causality order) nothing orders the two then; many kernels rely on the mbarrier between them.
    """
    if space.journal is None or space.shadow is None:
        return
    conflict = space.shadow.released_unfenced(warp, rows, access.width)
    if conflict is not None:
        where = space.show_row(int(rows[conflict.index]), access.width, conflict.byte)
        text = f"overwrites {space.name} {where} by the async proxy, which {warp.block.describe(conflict.agent)} read"
        space.journal.remark(access.site, f"{text} by the generic one, with no fence.proxy.async between")


def remark_fenced_late(space: Space, warp: Warp, access: Access, lane: int, rows: NumPyArray) -> None:
    """A remark on a copy of the lane from bytes that other threads wrote, where only fences of threads behind these
    writers order the proxies. PTX asks for no more; CUTLASS lets each writer execute a fence.
    """
    if space.journal is None or space.shadow is None or access.site in space.journal.remarks:
        return
    before = warp.mask_state()
    warp.spread(lane, len(rows))
    conflict = _fenced_late(space, space.shadow.write_rows[access.width][rows], warp, access.width)
    warp.restore(before)
    if conflict is not None:
        where = space.show_row(int(rows[conflict.index]), access.width, conflict.byte)
        text = (
            f"reads {space.name} {where} by the async proxy, which {warp.block.describe(conflict.agent)} wrote by the "
            "generic one; that thread executes no fence.proxy.async behind the write, but only one that learns of it"
        )
        space.journal.remark(access.site, text, Code.SIM_PROXY)


def _fenced_late(space: Space, entries: Entries, warp: Warp, width: int) -> Conflict | None:
    """The first write by the generic proxy, of those of some rows, whose thread is another one of the cluster than the
    active lanes and has executed no fence of the proxy behind it.
    """
    bad = (entries != 0) & (entries & (PROXIED | SEVERAL) == 0) & ~np.isin(entries & AGENT, warp.active_agents())
    if not bad.any():
        return None
    ordered = np.sort(entries[bad])  # the time is the upper half: the last of an agent stays
    latest = dict(zip((ordered & AGENT).tolist(), ordered.tolist(), strict=True))
    untils = times_of(known(warp), warp, np.array(list(latest.values()), np.int64)).tolist()
    fences = warp.block.cluster.state(ProxyFences)
    lacking = [
        agent
        for (agent, entry), until in zip(latest.items(), untils, strict=True)
        if until and fences.lacks(space.name, agent, entry >> 32, until)
    ]
    bad &= np.isin(entries & AGENT, lacking)
    return first_conflict(bad, entries, True, width) if bad.any() else None


def claim_reduction(
    space: Space, warp: Warp, access: Access, lane: int, rows: NumPyArray, others: Sequence[AsyncOperation]
) -> None:
    """Checks that a reduction of the lane may change rows, which must be defined. They may be in flight by others of
    its kind. The faults of `Space.update`, and E3216.
    """
    before = warp.mask_state()
    for other in others:
        space.lift(other.rows, other.width)
    warp.spread(lane, len(rows))
    states = space.arena.state[access.width][rows]
    if not (states == READY).all():
        content = space.arena.data[access.width][rows]
        content[states == UNWRITTEN] = space.undefined(warp, access, rows)
        warp.note(access.site, "changes", content)
    space.check_writable(warp, access, rows)
    _check_order(space, warp, access, rows, writes=True, atomic=True)
    for other in others:
        space.hold(warp, other.rows, other.width)
    warp.restore(before)


def _check_order(
    space: Space, warp: Warp, access: Access, rows: NumPyArray, writes: bool, atomic: bool = False
) -> None:
    """A fault if nothing orders an earlier access before this one (E3205), or no fence of its proxy does (E3216)."""
    problem = None if space.shadow is None else space.shadow.issue(warp, rows, access.width, writes, atomic)
    if problem is None:
        return
    conflict, is_ordered = problem
    verb = "writes" if writes else "reads"
    if not is_ordered:
        race(space, warp, access, rows, conflict, verb)
        return
    where, other = space.show_row(int(rows[conflict.index]), access.width, conflict.byte), conflict.agent
    text = (
        f"{verb} {space.name} {where} by the async proxy, which {warp.block.describe(other)} wrote by the generic one"
    )
    hint = "let the thread that wrote execute ptx.fence.proxy.async before the barrier, or this thread after it"
    lane, row = int(warp.lane_numbers()[0]), int(rows[conflict.index])
    at = space.name, row * access.width + conflict.byte
    warp.fault(Code.SIM_PROXY, access.site, lane, f"{text}; fence.proxy.async between them is missing", hint, at)
