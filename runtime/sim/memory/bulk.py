# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Accesses of bulk copies: contiguous bytes that the async proxy reads or writes, as rows of 16 bytes.

While a lane's access is checked, the warp is spread: the lane is active as if it were as many lanes as the access has
rows.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....base.errors import Code
from ....base.target import BANK_BYTES, BANKS, SECTOR_BYTES
from ....dialects.ptx import BULK_UNIT
from ..warp import Warp
from .arena import READY, UNWRITTEN
from .spaces import Access, Bytes, Space

_PASS = BANKS * BANK_BYTES


def rows_of(space: Space, warp: Warp, access: Access, lane: int, address: int, size: int, reads: bool) -> NDArray[Any]:
    """The rows of `size` bytes at `address`, an access of a lane; it is counted. SimulationError where address or size
    is not a multiple of 16 (E3203), and for bytes beyond the memory (E3202).
    """
    if address % BULK_UNIT:
        text = f"the {space.name} address {space.show(address)} of a bulk copy is not a multiple of {BULK_UNIT} bytes"
        warp.fault(Code.SIM_MISALIGNED, access.site, lane, text, "align the tensor, and the strides of its layout")
    if size % BULK_UNIT:
        text = f"the size of a bulk copy is {size} bytes, which is not a multiple of {BULK_UNIT}"
        warp.fault(Code.SIM_MISALIGNED, access.site, lane, text, f"copy a multiple of {BULK_UNIT} bytes")
    first, end = address - space.base, address - space.base + size
    if first < 0 or end > space.arena.span:
        beyond = address if not 0 <= first < space.arena.span else space.base + space.arena.span
        warp.spread(lane, 1)
        space.out_of_bounds(warp, access, 0, beyond, loading=reads)
    granule = _PASS if space.name == "shared" else SECTOR_BYTES
    access.requests += 1
    access.threads += size // BULK_UNIT
    access.transactions += -(-end // granule) - first // granule if size else 0
    access.minimum += -(-size // granule)
    start = warp.block.rank * space.arena.span if space.name == "shared" else 0
    return np.arange(start + first, start + end, BULK_UNIT) // BULK_UNIT


def read(space: Space, warp: Warp, access: Access, lane: int, rows: NDArray[Any]) -> Bytes:
    """The bytes of rows that a copy of the lane reads, an array (rows, 16). The faults of `Space.load`, and E3216."""
    before = warp.mask_state()
    warp.spread(lane, len(rows))
    states = space.arena.state[BULK_UNIT][rows]
    missing = None if (states == READY).all() else space.undefined(warp, access, rows)
    _check_order(space, warp, access, rows, writes=False)
    content = space.arena.data[BULK_UNIT][rows]
    if missing is not None:
        content[states == UNWRITTEN] = missing
    warp.restore(before)
    return content


def claim(space: Space, warp: Warp, access: Access, lane: int, rows: NDArray[Any], content: Bytes) -> None:
    """Checks that a copy of the lane may write bytes to rows. The faults of `Space.store`, and E3216."""
    before = warp.mask_state()
    warp.spread(lane, len(rows))
    space.check_writable(warp, access, rows)
    _check_order(space, warp, access, rows, writes=True)
    if space.name == "global":
        warp.note(access.site, "stores", content)
    warp.restore(before)


def _check_order(space: Space, warp: Warp, access: Access, rows: NDArray[Any], writes: bool) -> None:
    """A fault if nothing orders an earlier access before this one (E3205), or no fence of its proxy does (E3216)."""
    problem = None if space.shadow is None else space.shadow.issue(warp, rows, BULK_UNIT, writes)
    if problem is None:
        return
    conflict, is_ordered = problem
    verb = "writes" if writes else "reads"
    if not is_ordered:
        space.race(warp, access, rows, conflict, verb)
    where, other = space.show_row(int(rows[conflict.index]), BULK_UNIT, conflict.byte), conflict.agent
    text = (
        f"{verb} {space.name} {where} by the async proxy, which {warp.block.describe(other)} wrote by the generic one"
    )
    hint = "let the thread that wrote execute ptx.fence.proxy.async before the barrier, or this thread after it"
    lane = int(warp.lane_numbers()[0])
    warp.fault(Code.SIM_PROXY, access.site, lane, f"{text}; fence.proxy.async is missing between", hint)
