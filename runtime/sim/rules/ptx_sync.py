# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rules for cp.async, barriers, printf and ret of the ptx dialect (PTX ISA, sections of these names)."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn

import numpy as np
from xdsl.dialects import scf
from xdsl.ir import Operation
from xdsl.traits import IsTerminator

from ....base.errors import Code
from ....base.target import BARRIERS
from ....dialects import ptx
from ....dialects.kernel import KernelOp
from ....dialects.ptx.effects import Act, NamedBarrier, does, proxy_of
from ..events import Barrier, Step, Suspending, Suspension, Votes
from ..faults import site_of
from ..memory.journal import Journal
from ..ordering import asynchronous
from ..ordering.asynchronous import Source
from ..ordering.knowledge import await_launch_before, meet_lanes
from ..translate import Rules, Translator
from ..values import varies
from ..values.printf import format_values
from ..warp import Warp
from .ptx_lanes import Group


def _cp_async(op: ptx.CpAsyncOp, t: Translator) -> Step:
    target, source, width = t.slot(op.dst), t.slot(op.src), op.bytes.value.data
    shared, global_ = t.spaces.shared, t.spaces.global_
    reads = t.access(op, global_.row, "async", width)
    writes = t.access(op, shared.row, "async", width)
    size, site = None if op.src_size is None else t.slot(op.src_size), site_of(op)

    proxy = proxy_of(op)

    def step(warp: Warp) -> None:
        late: Source | None = None
        if size is None:
            given = global_.rows(warp, reads, warp.registers[source])
            content = global_.read_rows(warp, reads, given)
            late = Source(global_, given, width, warp.lane_numbers())
        else:
            counts = warp.select(warp.registers[size])
            wrong = (counts < 0) | (counts > width)
            if wrong.any():
                index = int(wrong.argmax())
                text = f"cp.async of {width} bytes has a source size of {int(counts[index])}"
                warp.fault(Code.SIM_ARITHMETIC, site, int(warp.lane_numbers()[index]), text)
            content = global_.load_leading(warp, reads, warp.registers[source], counts)
        rows = shared.claim(warp, writes, warp.registers[target])
        asynchronous.start(warp, site, proxy, shared, rows, width, content, late)

    return step


def _wait_group(op: ptx.CpAsyncWaitGroupOp, t: Translator) -> Step:
    in_flight = op.n.value.data
    return lambda warp: asynchronous.wait(warp, in_flight)


def block_barrier(
    op: Operation, number: int, t: Translator, threads: int | None = None, waits: bool = True
) -> Suspending:
    """A step that waits for all threads of the block, or for a number of them, or that only arrives there."""
    site, check = site_of(op), _check_whole(op)
    if threads is not None:
        t.launch.leave_lockstep()
        t.launch.pairs = True
    barrier, shared = Barrier(number, site, threads, waits), t.spaces.shared

    def run(warp: Warp) -> Suspension:
        check(warp)
        yield barrier
        if threads is None and shared.journal is not None:
            _remark_on_surplus(warp, barrier, shared.journal)

    return Suspending(run)


@dataclass(slots=True)
class _Met:
    """How often a warp has met all others of its block, and how many of its lanes had returned at the last time."""

    warp: Warp
    times: int = 0
    ended: int = 0


def _remark_on_surplus(warp: Warp, barrier: Barrier, journal: Journal) -> None:
    """A remark on a barrier of the block that waits for some threads only, since others have returned after an earlier
    one: PTX allows that (bar: threads that have exited do not count), but it is often a barrier too many.
    """
    mine = warp.state(_Met)
    mine.times += 1
    ended = 0 if warp.ended is None else int(np.count_nonzero(warp.ended))
    others = [other for other in warp.block.cluster.ended if other.block is warp.block]
    gone = sum(other.lanes for other in others if 0 < other.state(_Met).times < mine.times)
    if mine.times > 1:
        gone += ended - mine.ended
    mine.ended = ended
    if gone:
        text = (
            f"waits for only some threads: {gone} others of the block have met them at a barrier before, and returned"
        )
        journal.remark(barrier.site, text, Code.SIM_BARRIER)


def _check_whole(op: Operation) -> Callable[[Warp], None]:
    """A check that all lanes of a warp which have not returned reach a barrier; else SimulationError (E3207). Lanes
    that arrive one by one, `branches` brings together.
    """
    site, others_return = site_of(op), _others_return(op)
    one_by_one = _is_unaligned(op) and isinstance(op.parent_op(), KernelOp)

    def check(warp: Warp) -> None:
        if warp.is_of_whole_blocks:
            return
        warp.leave_lockstep()
        if one_by_one:
            return
        if others_return:
            warp.ended = ~warp.live() if warp.ended is None else warp.ended | ~warp.live()
            return
        lane = int((~warp.live()).argmax())
        reached = f"{warp.active} of the warp's {warp.lanes} lanes do"
        text = f"the thread does not reach this barrier, which {reached}"
        warp.fault(Code.SIM_BARRIER, site, lane, text, "move the barrier out of divergent control flow")

    return check


def _is_unaligned(op: Operation) -> bool:
    return isinstance(op, ptx.BarSyncOp | ptx.BarArriveOp | ptx.BarRedOp) and op.unaligned is not None


def _others_return(op: Operation) -> bool:
    """Whether threads that do not take the branches around an operation have nothing left to do: they have returned."""
    inner = op
    while isinstance(outer := inner.parent_op(), scf.IfOp):
        other = [region for region in outer.regions if region is not inner.parent_region()]
        others = [last for region in other for block in region.blocks for last in block.ops]
        if not all(last.has_trait(IsTerminator) for last in (*others, outer.next_op) if last is not None):
            return False
        inner = outer
    return inner is not op and isinstance(outer, KernelOp)


def _bar_sync(op: ptx.BarSyncOp | ptx.BarArriveOp, t: Translator) -> Suspending:
    site, waits = site_of(op), does(op, Act.WAITS, NamedBarrier)
    if op.offset is None and op.count is None:
        return block_barrier(op, op.id.value.data, t, None if op.threads is None else op.threads.value.data, waits)
    check, where = _check_whole(op), _where(op, t)

    def run(warp: Warp) -> Suspension:
        check(warp)
        number, threads = where(warp)
        yield Barrier(number, site, threads, waits)

    return Suspending(run)


def _where(
    op: ptx.BarSyncOp | ptx.BarArriveOp | ptx.BarRedOp, t: Translator
) -> Callable[[Warp], tuple[int, int | None]]:
    """The number of a barrier, and that of its threads, which a warp gives. SimulationError (E3207) where its lanes
    differ, and for numbers that no barrier has.
    """
    site, first, known = site_of(op), op.id.value.data, None if op.threads is None else op.threads.value.data
    offset, count = (None if operand is None else t.slot(operand) for operand in (op.offset, op.count))
    if known is not None or count is not None or offset is not None:
        t.launch.leave_lockstep()
        t.launch.pairs = True

    def fault(warp: Warp, index: int, text: str, hint: str) -> NoReturn:
        warp.fault(Code.SIM_BARRIER, site, int(warp.lane_numbers()[index]), text, hint)

    def find(warp: Warp) -> tuple[int, int | None]:
        number, threads = first, known
        if offset is not None:
            numbers = warp.select(warp.registers[offset]) + first
            number = int(numbers[0])
            wrong = (numbers < 0) | (numbers >= BARRIERS) | (numbers != number)
            if wrong.any():
                text = f"the barrier is {int(numbers[wrong][0])}, and {number} in the warp's first lane"
                fault(warp, int(wrong.argmax()), text, f"give all lanes of a warp one number below {BARRIERS}")
        if count is not None:
            counts = warp.select(warp.registers[count])
            threads = int(counts[0])
            if (differing := counts != threads).any():
                text = (
                    f"{int(counts[differing][0])} threads meet at the barrier, and {threads} in the warp's first lane"
                )
                fault(warp, int(differing.argmax()), text, "give all lanes of a warp one number")
            if problem := ptx.wrong_count(threads):
                fault(warp, 0, problem, "round the number up to whole warps")
        return number, threads

    return find


def _bar_red(op: ptx.BarRedOp, t: Translator) -> Suspending:
    predicate, result, kind, site = t.slot(op.predicate), t.slot(op.result), op.kind.data, site_of(op)
    check, where, shared = _check_whole(op), _where(op, t), t.spaces.shared

    def run(warp: Warp) -> Suspension:
        check(warp)
        if warp.spans_blocks:
            warp.leave_lockstep()
        number, threads = where(warp)
        votes = Votes(frozenset((kind,)), int(np.count_nonzero(warp.select(warp.registers[predicate]))), warp.active)
        yield Barrier(number, site, threads, votes=votes)
        if len(votes.kinds) > 1 and shared.journal is not None:
            kinds = " and ".join(sorted(votes.kinds))
            text = (
                f"the check assumes that threads which meet at barrier {number} by {kinds} each have the result of "
                "their own operation; the PTX ISA does not say so"
            )
            shared.journal.assume(site, text)
        every = votes.holding == votes.threads
        warp.registers[result] = {"popc": votes.holding, "or": votes.holding > 0, "and": every}[kind]

    return Suspending(run)


def _bar_warp_sync(op: ptx.BarWarpSyncOp, t: Translator) -> Step:
    site, bits = site_of(op), op.mask.value.data & 0xFFFFFFFF
    if op.lanes is not None:
        return _meet_by(Group("bar.warp.sync", op.lanes, site, t))

    def step(warp: Warp) -> None:
        if warp.is_several and not (warp.is_whole and bits == 0xFFFFFFFF):
            warp.leave_lockstep()
        lanes = np.arange(warp.lanes)
        named = (bits >> lanes) & 1 != 0
        active = warp.live()
        if not (named == active).all():
            lane = int((named != active).argmax())
            text = "names this lane, which does not execute it" if named[lane] else "does not name this lane"
            hint = "let exactly the lanes of the mask execute the barrier"
            warp.fault(Code.SIM_CONVERGENCE, site, lane, f"the mask of the barrier {text}", hint)
        meet_lanes(warp, warp.lane_numbers())

    return step


def _meet_by(group: Group) -> Step:
    """The lanes of each mask meet."""

    def step(warp: Warp) -> None:
        rows, lanes = group.rows(warp), warp.lane_numbers()
        if rows is None:
            meet_lanes(warp, lanes)
            return
        for members in np.unique(rows[lanes], axis=0):
            meet_lanes(warp, lanes[members[lanes]])

    return step


def _launch_dependents(op: ptx.LaunchDependentsOp, t: Translator) -> Step:
    t.launch.lets_next_begin = True

    def step(warp: Warp) -> None:
        """Nothing happens: a launch begins when the one before has ended; but see `Stream`."""

    return step


def _printf(op: ptx.PrintfOp, t: Translator) -> Step:
    slots, site = t.slots(op.args), site_of(op)
    text = op.format.data
    widths = [ptx.scalar_bits(arg.type) or 64 for arg in op.args]

    def step(warp: Warp) -> None:
        values = [warp.registers[slot] for slot in slots]
        for lane in warp.lane_numbers().tolist():
            warp.launch.print(format_values(text, [v[lane] if varies(v) else v for v in values], widths), site)

    return step


PTX_SYNC: Rules = {
    ptx.CpAsyncOp: _cp_async,
    ptx.CpAsyncCommitGroupOp: lambda op, t: asynchronous.commit,
    ptx.CpAsyncWaitGroupOp: _wait_group,
    ptx.CpAsyncWaitAllOp: lambda op, t: asynchronous.wait_all,
    ptx.BarSyncOp: _bar_sync,
    ptx.BarArriveOp: _bar_sync,
    ptx.BarRedOp: _bar_red,
    ptx.BarWarpSyncOp: _bar_warp_sync,
    ptx.GridDependencyWaitOp: lambda op, t: await_launch_before,
    ptx.LaunchDependentsOp: _launch_dependents,
    ptx.PrintfOp: _printf,
}
