# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rules for clusters: addresses in peers, asynchronous stores there, and the cluster barrier (PTX ISA, mapa,
getctarank, st.async, red.async, barrier.cluster and fence.mbarrier_init).
"""

import numpy as np
from numpy.typing import NDArray

from ....base.errors import Code
from ....dialects import ptx
from ....dialects.ptx.effects import Proxy, proxy_of
from ..events import Step, Suspending, Suspension, Until
from ..faults import Site, site_of
from ..launch import Completion
from ..memory.arena import Access, Atomic
from ..memory.spaces import Space
from ..ordering.asynchronous import AsyncOperation, InFlight
from ..ordering.cluster import ClusterBarrier, map_to_rank, rank_of
from ..ordering.knowledge import snapshot
from ..ordering.mbarrier import mbarriers_of
from ..translate import Rules, Translator
from ..values import Lanes, varies
from ..warp import Warp
from .ptx_atomic import changes
from .ptx_mbarrier import MBARRIER_BYTES, Barriers
from .ptx_memory import to_bytes

RELEASED = "let the thread that read execute ptx.fence.proxy.async before it gives the bytes back"


def _getctarank(op: ptx.GetCtaRankOp, t: Translator) -> Step:
    pointer, result, dtype = t.slot(op.ptr), t.slot(op.result), t.kind(op.result).dtype

    def step(warp: Warp) -> None:
        rank = rank_of(warp, warp.registers[pointer])
        warp.registers[result] = rank.astype(dtype) if varies(rank) else rank

    return step


def _leader(op: ptx.PairLeaderOp, t: Translator) -> Step:
    pointer, result = t.slot(op.ptr), t.slot(op.result)

    def step(warp: Warp) -> None:
        warp.registers[result] = map_to_rank(warp.registers[pointer], warp.block.rank & ~1)

    return step


def _start(
    warp: Warp, barriers: Barriers, proxy: Proxy, rows: Lanes, width: int, content: NDArray[np.uint8]
) -> list[tuple[AsyncOperation, int]]:
    """Operations of the active lanes, one for each mbarrier, that write rows and count their bytes there; each with its
    agent. SimulationError (E3215) for an mbarrier in another block than the bytes.
    """
    space, lanes, places = barriers.shared, warp.lane_numbers(), barriers.rows(warp)
    apart = rows * width // space.arena.span != places * MBARRIER_BYTES // space.arena.span
    if apart.any():
        barriers.fault(warp, int(lanes[apart.argmax()]), "the mbarrier is not in the block of the bytes that it counts")
    operations: list[tuple[AsyncOperation, int]] = []
    for place in np.unique(places).tolist():
        own, barrier = places == place, mbarriers_of(warp.block.cluster)[place]
        groups = np.zeros(np.count_nonzero(own), np.int64)
        operation = AsyncOperation(
            barriers.site, proxy, warp, lanes[own], groups, space, rows[own], width, content[own]
        )
        warp.state(InFlight).loads.append(operation)
        operations.append((operation, barrier.add(operation, width * len(groups))))
    return operations


def check_released(space: Space, warp: Warp, access: Access, rows: Lanes, own: bool = False) -> None:
    """SimulationError (E3216) if threads of other warps have read the bytes, or any with `own`, and no fence of the
    async proxy follows: an asynchronous store may come before such a read, though an mbarrier orders it after the read.
    """
    conflict = None if space.shadow is None else space.shadow.released_unfenced(warp, rows, access.width, own)
    if conflict is None:
        return
    row = int(rows[conflict.index])
    where = space.show_row(row, access.width, conflict.byte)
    text = (
        f"writes {space.name} {where} asynchronously, which {warp.block.describe(conflict.agent)} read; "
        "fence.proxy.async between them is missing"
    )
    lane, at = int(warp.lane_numbers()[conflict.index]), (space.name, row * access.width + conflict.byte)
    rival = warp.block.thread_of(conflict.agent)
    warp.fault(Code.SIM_PROXY, access.site, lane, text, RELEASED, at, rival=rival)


def _land_early(warp: Warp) -> None:
    """Completes the operation that the warp has just begun, where operations complete early."""
    if warp.launch.completion is Completion.EARLY:
        for barrier in mbarriers_of(warp.block.cluster).values():
            while barrier.arrivals:
                barrier.land()


def _st_async(op: ptx.StAsyncOp, t: Translator) -> Step:
    value, pointer, kind, space = t.slot(op.value), t.slot(op.ptr), t.kind(op.value), t.spaces.shared
    access, barriers = t.access(op, space.row, "async", kind.bytes), Barriers(op, op.bar, t, "async")
    proxy = proxy_of(op)

    def step(warp: Warp) -> None:
        rows = space.claim(warp, access, warp.registers[pointer])
        check_released(space, warp, access, rows)
        _start(warp, barriers, proxy, rows, kind.bytes, to_bytes(warp, warp.registers[value], kind))
        space.hold(warp, rows, kind.bytes)
        _land_early(warp)

    return step


def _red_async(op: ptx.RedAsyncOp, t: Translator) -> Step:
    """The change is made at once, as an atomic access of the agent of the mbarrier: others see it when that tells."""
    value, pointer, kind, space = t.slot(op.value), t.slot(op.ptr), t.kind(op.value), t.spaces.shared
    access, barriers = t.access(op, space.row, "async", kind.bytes), Barriers(op, op.bar, t, "async")
    proxy = proxy_of(op)
    change = changes(op.kind.data, kind, t.launch.exact)

    def step(warp: Warp) -> None:
        given = to_bytes(warp, warp.registers[value], kind)
        how = Atomic(
            lambda number, before: change(before, given[number]), acquires=False, releases=False, is_seen=False
        )
        rows = space.rows(warp, access, warp.registers[pointer])
        check_released(space, warp, access, rows)
        space.change(warp, access, rows, how)
        for operation, agent in _start(warp, barriers, proxy, rows, kind.bytes, given):
            space.attribute(warp, operation.rows, kind.bytes, agent)
            operation.flying[:] = False
        _land_early(warp)

    return step


def _check_aligned(warp: Warp, site: Site) -> None:
    if warp.mask is not None:
        lane = int((~warp.mask).argmax())
        text = (
            f"the thread does not reach this aligned barrier, which {warp.active} of the warp's {warp.lanes} lanes do"
        )
        hint = "omit `aligned`, or move the barrier out of divergent control flow"
        warp.fault(Code.SIM_CLUSTER_BARRIER, site, lane, text, hint)


def _arrive(op: ptx.ClusterArriveOp, t: Translator) -> Step:
    site, relaxed, aligned = site_of(op), op.relaxed is not None, op.aligned is not None

    def step(warp: Warp) -> None:
        if aligned:
            _check_aligned(warp, site)
        warp.block.cluster.state(ClusterBarrier).arrive(warp, site, relaxed)

    return step


def _wait(op: ptx.ClusterWaitOp, t: Translator) -> Suspending:
    site, aligned = site_of(op), op.aligned is not None

    def run(warp: Warp) -> Suspension:
        if aligned:
            _check_aligned(warp, site)
        barrier = warp.block.cluster.state(ClusterBarrier)
        phase = barrier.awaited(warp, site)
        yield Until(lambda: barrier.phase > phase, site, lambda: ("the cluster barrier", barrier.missing()))
        barrier.leave(warp)

    return Suspending(run)


def _fence(op: ptx.FenceMbarrierInitOp, t: Translator) -> Step:
    def step(warp: Warp) -> None:
        places = warp.first_index + warp.lane_numbers()
        for barrier in mbarriers_of(warp.block.cluster).values():
            barrier.is_published |= barrier.maker in places
        warp.published = snapshot(warp, warp.lane_numbers())

    return step


PTX_CLUSTER: Rules = {
    ptx.MapaOp: lambda op, t: t.compute(op.result, map_to_rank, op.ptr, op.rank),
    ptx.PairLeaderOp: _leader,
    ptx.GetCtaRankOp: _getctarank,
    ptx.StAsyncOp: _st_async,
    ptx.RedAsyncOp: _red_async,
    ptx.ClusterArriveOp: _arrive,
    ptx.ClusterWaitOp: _wait,
    ptx.FenceMbarrierInitOp: _fence,
}
