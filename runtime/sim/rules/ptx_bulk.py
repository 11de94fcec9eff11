# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rules for bulk copies, their groups and the fence of their proxy (PTX ISA, cp.async.bulk and fence.proxy.async)."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ....base.errors import Code
from ....base.spaces import GMEM, SMEM
from ....base.target import MAX_CLUSTER
from ....dialects import ptx
from ....dialects.ptx.effects import proxy_of
from ....layout.tma.recipe import MapElement
from ...engine import NumPyArray, numpy_type
from ..events import Step
from ..faults import Site, site_of
from ..launch import Completion
from ..memory import bulk as memory
from ..memory.spaces import Space
from ..ordering import bulk
from ..ordering.asynchronous import AsyncOperation, InFlight, Source
from ..ordering.bulk import Change, Reduction
from ..ordering.cluster import map_to_rank, windows_of
from ..ordering.knowledge import fence_proxy
from ..ordering.mbarrier import Mbarrier, mbarriers_of
from ..translate import Rules, Translator
from ..values import ValueKind
from ..warp import Warp
from .ptx_atomic import changes
from .ptx_mbarrier import MBARRIER_BYTES, Barriers

if TYPE_CHECKING:
    from ..exact.patterns import Table


_Taken = tuple[Source, NDArray[np.uint8]]
"""The rows that a copy reads, and their bytes."""


class _Copies:
    """The copies of the lanes of a warp by one operation, from a space to another."""

    def __init__(
        self,
        op: ptx.BulkLoadOp | ptx.BulkStoreOp | ptx.BulkReduceOp | ptx.BulkSendOp,
        t: Translator,
        source: Space,
        target: Space,
    ) -> None:
        self.site, self.proxy, self.source, self.target = site_of(op), proxy_of(op), source, target
        self._masks: dict[int, int] = {}
        self._reads = t.access(op, source.row, "bulk", ptx.BULK_UNIT)
        self._writes = t.access(op, target.row, "bulk", ptx.BULK_UNIT)
        several = isinstance(op, ptx.BulkLoadOp) and op.multicast is not None
        self._multicast = t.access(op, SMEM, "multicast", ptx.BULK_UNIT) if several else None
        mask = op.mask if isinstance(op, ptx.BulkStoreOp) else None
        if mask is not None:
            self._writes = t.access(op, target.row, "bulk", 1)
        self._operands = tuple(t.slot(operand) for operand in (op.src, op.dst, op.bytes, *([mask] if mask else ())))

    def requests(self, warp: Warp) -> Iterator[tuple[int, int, int, int]]:
        """Each active lane with its source address, target address and size in bytes."""
        sources, targets, sizes, *masks = _select(warp, self._reads.site, self._operands)
        lanes = warp.lane_numbers().tolist()
        self._masks = dict(zip(lanes, masks[0].tolist(), strict=True)) if masks else {}
        return zip(
            lanes, sources.tolist(), targets.tolist(), (sizes.astype(np.int64) & 0xFFFFFFFF).tolist(), strict=True
        )

    def take(self, warp: Warp, lane: int, address: int, size: int) -> _Taken:
        """The rows that the copy of a lane reads, and their bytes."""
        rows = memory.rows_of(self.source, warp, self._reads, lane, address, size, reads=True)
        content = memory.read(self.source, warp, self._reads, lane, rows)
        memory.remark_fenced_late(self.source, warp, self._reads, lane, rows)
        return Source(self.source, rows, ptx.BULK_UNIT, np.full(len(rows), lane)), content

    def start(
        self,
        warp: Warp,
        lane: int,
        taken: _Taken,
        target: int,
        size: int,
        group: int = 0,
        change: Change | None = None,
        rank: int | None = None,
        further: bool = False,
    ) -> AsyncOperation:
        """Starts the copy of a lane, or a reduction by a change, maybe to the shared memory of the block of a rank;
        `further` blocks of a multicast have an access of their own.
        """
        source, content = taken
        if self._writes.width == 1:
            return self._start_masked(warp, lane, source, target, content, group)
        writes = self._multicast if further and self._multicast is not None else self._writes
        written = memory.rows_of(self.target, warp, writes, lane, target, size, reads=False)
        if rank is not None:
            written += (rank - warp.block.rank) * (self.target.arena.span // ptx.BULK_UNIT)
        if change is None:
            memory.claim(self.target, warp, self._writes, lane, written, content)
        else:
            others = bulk.reductions(warp.block.cluster, change.kind)
            memory.claim_reduction(self.target, warp, self._writes, lane, written, others)
        self.target.hold(warp, written, ptx.BULK_UNIT)
        lanes, groups = np.full(len(written), lane), np.full(len(written), group)
        warp.block.cluster.reads_late = True
        of_all = self.site, self.proxy, warp, lanes, groups, self.target, written, ptx.BULK_UNIT, content, source
        return AsyncOperation(*of_all) if change is None else Reduction(*of_all, change=change)

    def moves(self, lane: int) -> bool:
        """Whether the copy of a lane moves any bytes: its mask, if it has one, may name none."""
        return self._masks.get(lane, -1) & 0xFFFF != 0

    def _start_masked(
        self, warp: Warp, lane: int, source: Source, target: int, content: NDArray[np.uint8], group: int
    ) -> AsyncOperation:
        """Starts a copy of some bytes of each unit, which the lane's mask names; others are not accessed."""
        memory.check_aligned(self.target, warp, self._writes, lane, target)
        chosen = np.flatnonzero(self._masks[lane] >> np.arange(ptx.BULK_UNIT) & 1)
        places = (target + ptx.BULK_UNIT * np.arange(len(source.rows))[:, None] + chosen).ravel()
        written = memory.rows_at(self.target, warp, self._writes, lane, places, reads=False)
        bytes = content[:, chosen].reshape(-1, 1)
        memory.claim(self.target, warp, self._writes, lane, written, bytes)
        self.target.hold(warp, written, 1)
        lanes, groups = np.full(len(written), lane), np.full(len(written), group)
        warp.block.cluster.reads_late = True
        return AsyncOperation(self.site, self.proxy, warp, lanes, groups, self.target, written, 1, bytes, source)

    def window(self, warp: Warp, lane: int, address: int) -> tuple[int, int]:
        """The rank of the block in whose shared memory a lane's copy writes, and the address there. The faults of
        `windows_of`.
        """
        before = warp.mask_state()
        warp.spread(lane, 1)
        ranks, inner = windows_of(warp, self._writes, np.array([address]), self.target.races)
        warp.restore(before)
        return int(ranks[0]), int(inner[0])


def _select(warp: Warp, site: Site, slots: tuple[int, ...]) -> list[NumPyArray]:
    """The addresses and sizes in registers of the active lanes, which must not depend on undefined bytes."""
    values = [warp.select(warp.registers[slot]) for slot in slots]
    warp.note(site, "copies bytes by", np.stack(values, axis=1))
    return values


def ranks_of(warp: Warp, site: Site, lane: int, mask: int | None) -> list[int]:
    """The ranks of the blocks that a load goes to. SimulationError (E3202) for a mask that names others, or none."""
    size = warp.block.cluster.size
    if mask is None:
        return [warp.block.rank]
    ranks = [rank for rank in range(MAX_CLUSTER) if mask >> rank & 1]
    if not ranks or ranks[-1] >= size:
        text = f"the mask {mask & 0xFFFF:#06x} names {f'rank {ranks[-1]}' if ranks else 'no block'}"
        hint = "bit i stands for rank i: set bits of ranks below the size of the cluster"
        warp.fault(Code.SIM_OUT_OF_BOUNDS, site, lane, f"{text}; the cluster has {size} blocks", hint)
    return ranks


def mbarrier_at(warp: Warp, barriers: Barriers, lane: int, address: int) -> Mbarrier:
    """The mbarrier at an address, maybe of a peer, which a copy of the lane completes. The faults of `Barriers.rows`,
    and as `Reach.note`.
    """
    before = warp.mask_state()
    warp.spread(lane, 1)
    (row,) = barriers.rows(warp, address=address).tolist()
    warp.restore(before)
    return mbarriers_of(warp.block.cluster)[row]


def _load(op: ptx.BulkLoadOp | ptx.BulkSendOp, t: Translator) -> Step:
    shared = t.spaces.shared
    copies = _Copies(op, t, shared if isinstance(op, ptx.BulkSendOp) else t.spaces.global_, shared)
    barriers, bar, change = Barriers(op, op.bar, t, "async"), t.slot(op.bar), None
    kind = op.kind if isinstance(op, ptx.BulkSendOp) else None
    reduction = None if kind is None else ptx.BULK_REDUCTIONS[kind.data]
    mask = t.slot(op.multicast) if isinstance(op, ptx.BulkLoadOp) and op.multicast is not None else None

    def start(
        warp: Warp, lane: int, taken: _Taken, target: int, size: int, barrier: Mbarrier, further: bool = False
    ) -> None:
        rank, inner = copies.window(warp, lane, target)
        if barrier.row * MBARRIER_BYTES // shared.arena.span != rank:
            barriers.fault(warp, lane, "the mbarrier is not in the block of the bytes that it counts")
        if size:
            operation = copies.start(warp, lane, taken, inner, size, change=change, rank=rank, further=further)
            warp.state(InFlight).loads.append(operation)
            barrier.add(operation, size)
            if warp.launch.completion is Completion.EARLY:
                barrier.land()

    def step(warp: Warp) -> None:
        nonlocal change
        if reduction is not None and change is None:
            change = change_of(*reduction, shared.arena.data[ptx.BULK_UNIT], t.launch.exact)
        bars = warp.select(warp.registers[bar]).tolist()
        masks = [None] * warp.active if mask is None else warp.select(warp.registers[mask]).tolist()
        for at, chosen, (lane, source, target, size) in zip(bars, masks, copies.requests(warp), strict=True):
            if size > ptx.MAX_TRANSACTION:
                where = barriers.show(warp, mbarrier_at(warp, barriers, lane, at).row)
                text = f"copies {size} bytes, but {where} counts up to {ptx.MAX_TRANSACTION}"
                barriers.fault(warp, lane, text)
            if chosen is None:
                barrier = mbarrier_at(warp, barriers, lane, at)
                start(warp, lane, copies.take(warp, lane, source, size), target, size, barrier)
                continue
            taken = copies.take(warp, lane, source, size)
            for number, rank in enumerate(ranks_of(warp, copies.site, lane, chosen)):
                barrier = mbarrier_at(warp, barriers, lane, int(map_to_rank(at, rank)))
                start(warp, lane, taken, int(map_to_rank(target, rank)), size, barrier, number > 0)

    return step


def _store(op: ptx.BulkStoreOp | ptx.BulkReduceOp, t: Translator) -> Step:
    copies, change = _Copies(op, t, t.spaces.shared, t.spaces.global_), None
    reduction = ptx.BULK_REDUCTIONS[op.kind.data] if isinstance(op, ptx.BulkReduceOp) else None

    def step(warp: Warp) -> None:
        nonlocal change
        if reduction is not None and change is None:
            change = change_of(*reduction, t.spaces.global_.arena.data[ptx.BULK_UNIT], t.launch.exact)
        for lane, source, target, size in copies.requests(warp):
            if size and copies.moves(lane):
                group, taken = int(warp.bulk_groups[lane]), copies.take(warp, lane, source, size)
                warp.state(InFlight).stores.append(copies.start(warp, lane, taken, target, size, group, change))

    return step


def change_of(kind: str, element: MapElement, data: NDArray[np.uint8], exact: "Table | None") -> Change:
    """A reduction of elements in rows of memory."""
    combine = changes(kind, ValueKind(numpy_type(element.type), element.type.bits), exact)
    return Change(f"{kind} {element.name}", lambda rows, given: combine(data[rows], given))


def _prefetch(op: ptx.BulkPrefetchOp, t: Translator) -> Step:
    access, slots = t.access(op, GMEM, "bulk", ptx.BULK_UNIT), (t.slot(op.src), t.slot(op.bytes))

    def step(warp: Warp) -> None:
        lanes = warp.lane_numbers().tolist()
        sources, sizes = _select(warp, access.site, slots)
        for lane, source, size in zip(
            lanes, sources.tolist(), (sizes.astype(np.int64) & 0xFFFFFFFF).tolist(), strict=True
        ):
            memory.rows_of(t.spaces.global_, warp, access, lane, source, size, reads=True)

    return step


def _wait(op: ptx.BulkWaitGroupOp, t: Translator) -> Step:
    in_flight, reads_only = op.n.value.data, op.read is not None
    return lambda warp: bulk.wait(warp, in_flight, reads_only)


def _fence(op: ptx.FenceProxyAsyncOp, t: Translator) -> Step:
    spaces = op.spaces
    return lambda warp: fence_proxy(warp, spaces)


PTX_BULK: Rules = {
    ptx.BulkLoadOp: _load,
    ptx.BulkSendOp: _load,
    ptx.BulkStoreOp: _store,
    ptx.BulkReduceOp: _store,
    ptx.BulkPrefetchOp: _prefetch,
    ptx.BulkCommitGroupOp: lambda op, t: bulk.commit,
    ptx.BulkWaitGroupOp: _wait,
    ptx.FenceProxyAsyncOp: _fence,
}
