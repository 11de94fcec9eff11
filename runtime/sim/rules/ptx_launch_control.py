# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rules for cluster launch control (PTX ISA, clusterlaunchcontrol).

An answer is four numbers of 32 bits: whether a cluster has been cancelled, and the coordinate of its first block. The
simulator cancels the cluster that would begin next, and refuses only when all have begun.
"""

from dataclasses import dataclass

import numpy as np

from ....base.errors import Code
from ....base.spaces import SMEM
from ....dialects import ptx
from ....dialects.ptx.effects import proxy_of
from ....dialects.ptx.launch_control import ANSWER_BYTES
from ..events import Step
from ..faults import site_of
from ..launch import Completion
from ..memory import bulk as memory
from ..ordering.asynchronous import AsyncOperation, InFlight
from ..ordering.cluster import map_to_rank
from ..ordering.mbarrier import mbarriers_of
from ..translate import Rules, Translator
from ..warp import Cluster, Warp
from .ptx_cluster import check_released
from .ptx_mbarrier import Barriers

_ONCE = "let one thread of the cluster ask, and leave the loop at the first answer that is negative"


@dataclass(slots=True, eq=False)
class _Asked:
    """Whether a thread of the cluster has seen a negative answer."""

    cluster: Cluster
    refused: bool = False


def _try_cancel(op: ptx.TryCancelOp, t: Translator) -> Step:
    barriers, site, space = Barriers(op, op.bar, t, "async"), site_of(op), t.spaces.shared
    answer, bar, proxy = t.slot(op.answer), t.slot(op.bar), proxy_of(op)
    access = t.access(op, SMEM, "bulk", ANSWER_BYTES)
    multicast = op.multicast is not None

    def step(warp: Warp) -> None:
        cluster, launch = warp.block.cluster, warp.launch
        places = warp.select(warp.registers[answer]).tolist()
        bars = warp.select(warp.registers[bar]).tolist()
        for lane, place, at in zip(warp.lane_numbers().tolist(), places, bars, strict=True):
            if cluster.state(_Asked).refused:
                text = "asks for another cluster after an answer said that no cluster is left"
                warp.fault(Code.SIM_LAUNCH_CONTROL, site, lane, text, _ONCE)
            content = _answer(cluster)
            for rank in range(cluster.size) if multicast else (warp.block.rank,):
                before = warp.mask_state()
                warp.spread(lane, 1)
                (row,) = barriers.rows(warp, address=map_to_rank(at, rank) if multicast else at).tolist()
                warp.restore(before)
                rows = memory.rows_of(space, warp, access, lane, place, ANSWER_BYTES, reads=False)
                rows += (rank - warp.block.rank) * (space.arena.span // ANSWER_BYTES)
                before = warp.mask_state()
                warp.spread(lane, 1)
                check_released(space, warp, access, rows, own=True)
                warp.restore(before)
                memory.claim(space, warp, access, lane, rows, content)
                space.hold(warp, rows, ANSWER_BYTES)
                lanes = np.full(len(rows), lane)
                operation = AsyncOperation(
                    site, proxy, warp, lanes, np.zeros_like(lanes), space, rows, ANSWER_BYTES, content, None
                )
                warp.state(InFlight).loads.append(operation)
                barrier = mbarriers_of(cluster)[row]
                barrier.add(operation, ANSWER_BYTES)
                if launch.completion is Completion.EARLY:
                    barrier.land()

    return step


def _answer(cluster: Cluster) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    """The bytes of an answer, one row; a cluster of the same size that has not begun will not."""
    launch, words = cluster.launch, np.zeros(4, np.int32)
    if launch.grids.is_single and launch.coming and launch.coming[0][1] == cluster.size:
        number, size = launch.coming.popleft()
        launch.started += size
        launch.ended += size
        words[:] = (1, *launch.coordinate(number * size))
    return words.view(np.uint8).reshape(1, ANSWER_BYTES)


def _words(
    op: ptx.IsCanceledOp | ptx.FirstCtaidOp, warp: Warp, slot: int
) -> np.ndarray[tuple[int, ...], np.dtype[np.int32]]:
    """The four numbers of the answer that each lane has."""
    given = np.ascontiguousarray(np.broadcast_to(np.asarray(warp.registers[slot]), (warp.lanes, 2)), np.int64)
    return given.view(np.int32)


def _is_canceled(op: ptx.IsCanceledOp, t: Translator) -> Step:
    answer, result = t.slot(op.answer), t.slot(op.result)

    def step(warp: Warp) -> None:
        found = _words(op, warp, answer)[:, 0] != 0
        if not warp.select(found).all():
            warp.block.cluster.state(_Asked).refused = True
        warp.registers[result] = found

    return step


def _first_ctaid(op: ptx.FirstCtaidOp, t: Translator) -> Step:
    answer, results, site = t.slot(op.answer), t.slots(op.results), site_of(op)

    def step(warp: Warp) -> None:
        words = _words(op, warp, answer)
        missing = warp.select(words[:, 0] == 0)
        if missing.any():
            lane = int(warp.lane_numbers()[missing.argmax()])
            text = "takes the coordinate of a cancelled cluster from an answer that cancelled none"
            hint = "read it only where ptx.clusterlaunchcontrol.is_canceled holds"
            warp.fault(Code.SIM_LAUNCH_CONTROL, site, lane, text, hint)
        for axis, slot in enumerate(results):
            warp.registers[slot] = words[:, 1 + axis].copy()

    return step


PTX_LAUNCH_CONTROL: Rules = {
    ptx.TryCancelOp: _try_cancel,
    ptx.IsCanceledOp: _is_canceled,
    ptx.FirstCtaidOp: _first_ctaid,
}
