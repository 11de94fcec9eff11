# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rules for the allocation of tensor memory by all threads of a block, and its end."""

from dataclasses import dataclass, field

from xdsl.ir import Operation

from ....base.errors import Code
from ....base.target import WARP
from ....dialects import tile
from ..events import Suspending, Suspension, Until
from ..faults import Site, site_of
from ..ordering.cluster import ClusterBarrier
from ..tcgen05 import columns
from ..tcgen05.cells import TensorCells
from ..tcgen05.order import fence
from ..translate import Rules, Translator
from ..warp import Block, Warp
from .ptx_sync import block_barrier
from .tcgen05_copies import check_whole


@dataclass(slots=True, eq=False)
class _Made:
    """The first columns of a block's allocations, by their operations."""

    block: Block
    first: dict[Operation, int] = field(default_factory=dict[Operation, int])
    ending: dict[Operation, set[int]] = field(default_factory=dict[Operation, set[int]])
    """The warps that have come to the end of columns."""


def _meet_cluster(warp: Warp, site: Site) -> Suspension:
    """Waits for all threads of the cluster."""
    check_whole(warp, site, "the barrier of a cluster")
    barrier = warp.block.cluster.state(ClusterBarrier)
    barrier.arrive(warp, site, relaxed=False)
    phase = barrier.awaited(warp, site)
    yield Until(lambda: barrier.phase > phase, site, lambda: ("the cluster barrier", barrier.missing()))
    barrier.leave(warp)


def _alloc(op: tile.TmemAllocOp, t: Translator) -> Suspending:
    t.launch.leave_lockstep()
    site, cells, result = site_of(op), TensorCells(site_of(op), t), t.slot(op.result)
    count, blocks, barrier = op.columns.value.data, op.blocks, block_barrier(op, 0, t)

    def run(warp: Warp) -> Suspension:
        made = warp.block.state(_Made).first
        if blocks == 2:  # the other block must have begun
            yield from _meet_cluster(warp, site)
        if warp.index == 0:
            held = cells.space.columns
            before = set(held.get(warp.block.rank, {}))
            yield from columns.allocate(warp, cells.space, t.spaces.shared, site, blocks, count)
            (made[op],) = set(held[warp.block.rank]) - before
            columns.relinquish(warp, site)
        fence(warp, before=True)
        yield from barrier.run(warp)
        fence(warp, before=False)
        warp.registers[result] = made[op]

    return Suspending(run)


def _dealloc(op: tile.TmemDeallocOp, t: Translator) -> Suspending:
    t.launch.leave_lockstep()
    site, cells, address = site_of(op), TensorCells(site_of(op), t), t.slot(op.address)
    made = op.allocation
    count, blocks, barrier = made.columns.value.data, made.blocks, block_barrier(op, 0, t)

    def run(warp: Warp) -> Suspension:
        here = warp.block.state(_Made).ending.setdefault(op, set())
        here.add(warp.index)
        fence(warp, before=True)
        yield from (_meet_cluster(warp, site) if blocks == 2 else barrier.run(warp))
        fence(warp, before=False)
        others = set(range(-(-warp.block.cluster.config.threads // WARP))) - here
        if others:
            text = f"ends columns of tensor memory without warp {min(others)}, and all warps of the block must come"
            hint = "move it out of the branch: at its barrier they would meet at another one, or not at all"
            warp.fault(Code.SIM_TENSOR_COLUMNS, site, None, text, hint)
        if warp.index == 0:
            at = cells.address(warp, warp.registers[address])
            columns.release(warp, cells.space, site, at, blocks, count, cells.is_ordered)

    return Suspending(run)


TILE_ALLOCATIONS: Rules = {tile.TmemAllocOp: _alloc, tile.TmemDeallocOp: _dealloc}
