# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rules for the allocation of tensor memory, its waits and its fences (PTX ISA, tcgen05)."""

import numpy as np

from ....base.spaces import SMEM
from ....dialects.ptx.tcgen05.memory import (
    TensorAllocOp,
    TensorDeallocOp,
    TensorFenceOp,
    TensorRelinquishOp,
    TensorWaitOp,
)
from ..events import Step, Suspending, Suspension
from ..faults import site_of
from ..tcgen05 import columns
from ..tcgen05.cells import TensorCells
from ..tcgen05.order import TensorOrder, fence
from ..translate import Rules, Translator
from ..values import varies
from ..warp import Warp
from .tcgen05_copies import check_whole


def _number(warp: Warp, slot: int) -> int:
    value = warp.registers[slot]
    return int(warp.select(value)[0]) if varies(value) else int(value)


def _alloc(op: TensorAllocOp, t: Translator) -> Suspending:
    site, cells = site_of(op), TensorCells(site_of(op), t)
    slot, count, blocks = t.slot(op.slot), t.slot(op.columns), op.blocks
    shared, access = t.spaces.shared, t.access(op, SMEM, "store", 4)

    def run(warp: Warp) -> Suspension:
        check_whole(warp, site, "tcgen05.alloc")
        own = warp.block.state(columns.Columns)
        turn, number = own.granted, _number(warp, count)
        before = set(cells.space.columns.get(warp.block.rank, {}))
        yield from columns.allocate(warp, cells.space, shared, site, blocks, number)
        first = own.made[turn] if blocks == 2 else next(iter(set(cells.space.columns[warp.block.rank]) - before))
        address = warp.registers[slot]
        state = warp.mask_state()
        warp.narrow(np.arange(warp.lanes) == 0)
        content = np.array([first], np.int32).view(np.uint8).reshape(1, 4)
        shared.store(warp, access, address, content)
        warp.restore(state)

    return Suspending(run)


def _dealloc(op: TensorDeallocOp, t: Translator) -> Step:
    site, cells = site_of(op), TensorCells(site_of(op), t)
    address, count, blocks = t.slot(op.address), t.slot(op.columns), op.blocks

    def step(warp: Warp) -> None:
        check_whole(warp, site, "tcgen05.dealloc")
        at = cells.address(warp, warp.registers[address])
        columns.release(warp, cells.space, site, at, blocks, _number(warp, count), cells.is_ordered)

    return step


def _relinquish(op: TensorRelinquishOp, t: Translator) -> Step:
    site = site_of(op)

    def step(warp: Warp) -> None:
        check_whole(warp, site, "tcgen05.relinquish_alloc_permit")
        columns.relinquish(warp, site)

    return step


def _wait(op: TensorWaitOp, t: Translator) -> Step:
    site, kind = site_of(op), op.kind.data

    def step(warp: Warp) -> None:
        check_whole(warp, site, f"tcgen05.wait::{kind}")
        order = warp.block.cluster.state(TensorOrder)
        order.finish([use for use in order.uses if use.warp is warp and use.does == kind and not use.is_over])

    return step


def _fence(op: TensorFenceOp, t: Translator) -> Step:
    is_before = op.is_before
    return lambda warp: fence(warp, is_before)


TCGEN05_MEMORY: Rules = {
    TensorAllocOp: _alloc,
    TensorDeallocOp: _dealloc,
    TensorRelinquishOp: _relinquish,
    TensorWaitOp: _wait,
    TensorFenceOp: _fence,
}
