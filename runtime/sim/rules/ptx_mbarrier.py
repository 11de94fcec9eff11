# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rules for mbarriers (PTX ISA, mbarrier and cp.async.mbarrier.arrive)."""

from collections.abc import Iterator

import numpy as np
from xdsl.ir import Operation, SSAValue

from ....base.errors import Code
from ....dialects import ptx
from ....dialects.ptx import effects
from ..events import Pause, Step, Suspending, Suspension, Until
from ..faults import site_of
from ..launch import Completion
from ..memory.arena import Access
from ..memory.spaces import Space
from ..ordering import asynchronous
from ..ordering.clocks import Clock, for_overwriting
from ..ordering.knowledge import snapshot
from ..ordering.mbarrier import Mbarrier, mbarriers_of
from ..translate import Rules, Translator
from ..values import Lanes, Value
from ..warp import Warp

MBARRIER_BYTES = 8


class Barriers:
    """How one operation finds the mbarriers of a warp's lanes."""

    def __init__(self, op: Operation, pointer: SSAValue, t: Translator, kind: str = "mbarrier") -> None:
        self.shared: Space = t.spaces.shared
        self.site = site_of(op)
        self.access = Access(self.site, self.shared.name, kind, MBARRIER_BYTES)
        self._is_async = kind == "async"
        self._is_proxied = self._is_async and not isinstance(op, ptx.StAsyncOp | ptx.RedAsyncOp)
        self._pointer = t.slot(pointer)

    def make(self, warp: Warp) -> Lanes:
        """The row of each active lane, where there is an mbarrier from now on."""
        return self.shared.make_mbarrier(warp, self.access, warp.registers[self._pointer])

    def rows(self, warp: Warp, ends: bool = False, address: Value = None) -> Lanes:
        """The row of each active lane, at the operation's pointer or another address; a fault if there is no mbarrier,
        or one whose initialisation another block does not know, or the copies that it starts; a remark on one that no
        fence made known to copies of its own block.
        """
        at = warp.registers[self._pointer] if address is None else address
        rows = self.shared.mbarrier(warp, self.access, at)
        theirs = rows * MBARRIER_BYTES // self.shared.arena.span != warp.block.rank
        for index in np.flatnonzero(theirs | self._is_async).tolist():
            barrier = mbarriers_of(warp.block.cluster)[int(rows[index])]
            lane = int(warp.lane_numbers()[index])
            is_ready = barrier.is_fenced if self._is_proxied else barrier.is_known
            if theirs[index] and not is_ready(warp, lane):
                text = f"{self._lacks_fence(warp, int(rows[index]))} for the cluster"
                hint = "let the thread that initialises it execute ptx.fence.mbarrier_init before the cluster barrier"
                if not self._is_proxied:
                    hint += ", or let it arrive there without relaxed"
                warp.fault(Code.SIM_MBARRIER_FENCE, self.site, lane, text, hint)
            journal, mine = self.shared.journal, not theirs[index] and self.shared.shadow is not None
            if journal is not None and mine and not barrier.is_fenced(warp, lane):  # a barrier of the block suffices
                text = f"{self._lacks_fence(warp, int(rows[index]))} between the proxies"
                journal.remark(self.site, text, Code.SIM_MBARRIER_FENCE)
        self.shared.use_mbarrier(warp, self.access, rows, ends)
        return rows

    def show(self, warp: Warp, row: int) -> str:
        """The mbarrier in a row in words: its name, or else where it is."""
        space, known = self.shared, mbarriers_of(warp.block.cluster).get(row)
        rank, offset = divmod(row * MBARRIER_BYTES, space.arena.span)
        name = known.label if known is not None and known.label else space.arena.place(offset, MBARRIER_BYTES)
        if name is None:
            return f"the mbarrier at {space.show_row(row, MBARRIER_BYTES)}"
        where = f" in the block of rank {rank}" if space.arena.data[1].size > space.arena.span else ""
        return f"the mbarrier {name}{where}"

    def _lacks_fence(self, warp: Warp, row: int) -> str:
        return f"uses {self.show(warp, row)}, and its initialisation lacks a fence"

    def by_row(self, warp: Warp) -> Iterator[tuple[Mbarrier, Lanes]]:
        """The mbarriers of the active lanes, and the lanes of each."""
        rows, lanes = self.rows(warp), warp.lane_numbers()
        for row in np.unique(rows).tolist():
            yield mbarriers_of(warp.block.cluster)[row], lanes[rows == row]

    def fault(self, warp: Warp, lane: int, problem: str | None, hint: str = "") -> None:
        """Raises a fault of the lane, if there is a problem."""
        if problem is not None:
            warp.fault(Code.SIM_MBARRIER, self.site, lane, problem, hint)

    def arrive(self, warp: Warp, barrier: Mbarrier, lane: int, count: int, known: Clock | None) -> None:
        """Counts arrivals of a lane; a fault where the phase has all of them."""
        is_late = not barrier.pending
        self.fault(warp, lane, barrier.arrive(count, known, warp, lane), _TOO_SOON if is_late else "")


_TOO_SOON = (
    "an arrival for the next phase comes after this one is complete: before a producer fills a stage again, it waits "
    "for the mbarrier at which the consumers release the stage; if it does, expect as many bytes as come"
)


def _init(op: ptx.MbarrierInitOp, t: Translator) -> Step:
    barriers, count = Barriers(op, op.bar, t), t.slot(op.count)
    t.launch.pairs = True
    label = "" if op.label is None else op.label.data

    def step(warp: Warp) -> None:
        counts = warp.select(warp.registers[count]).tolist()
        for lane, number in zip(warp.lane_numbers().tolist(), counts, strict=True):
            if not 1 <= number <= ptx.MAX_ARRIVALS:
                text = f"the mbarrier would need {number} arrivals, where 1 to {ptx.MAX_ARRIVALS} are possible"
                barriers.fault(warp, lane, text)
        makers = warp.first_index + warp.lane_numbers()
        space = barriers.shared
        for row, number, maker in zip(barriers.make(warp).tolist(), counts, makers.tolist(), strict=True):
            place, made = row % (space.arena.span // MBARRIER_BYTES), warp.launch.clock
            made_here = Mbarrier(row, number, maker, place, made, space.shadow is not None, label=label)
            mbarriers_of(warp.block.cluster)[row] = made_here

    return step


def _inval(op: ptx.MbarrierInvalOp, t: Translator) -> Step:
    barriers = Barriers(op, op.bar, t)

    def step(warp: Warp) -> None:
        for row in barriers.rows(warp, ends=True).tolist():
            mbarriers_of(warp.block.cluster).pop(row).end()

    return step


def _arrive(op: ptx.MbarrierArriveOp, t: Translator) -> Step:
    barriers, count = Barriers(op, op.bar, t), None if op.count is None else t.slot(op.count)
    of_block = op.scope is not None  # a release that threads of other blocks need not see

    def step(warp: Warp) -> None:
        counts = np.ones(warp.lanes, np.int64)
        if count is not None:
            counts[warp.lane_numbers()] = warp.select(warp.registers[count])
        for barrier, lanes in barriers.by_row(warp):
            known = None if barriers.shared.shadow is None else snapshot(warp, lanes)
            warp.arrivals[warp.launch.clock] = barriers.site, None
            if known is not None and of_block and not barrier.is_of(warp):
                known = for_overwriting(known)
            for lane in lanes.tolist():
                barriers.arrive(warp, barrier, lane, int(counts[lane]), known)

    return step


_PENDING = 32
"""The bits of a state that name the phase; those above are the arrivals that it lacked before this one."""


def _arrive_state(op: ptx.MbarrierArriveStateOp, t: Translator) -> Step:
    barriers, state, count = Barriers(op, op.bar, t), t.slot(op.state), None if op.count is None else t.slot(op.count)
    drops = op.drop is not None

    def step(warp: Warp) -> None:
        counts, phases = np.ones(warp.lanes, np.int64), np.zeros(warp.lanes, np.int64)
        if count is not None:
            counts[warp.lane_numbers()] = warp.select(warp.registers[count])
        for barrier, lanes in barriers.by_row(warp):
            known = None if barriers.shared.shadow is None else snapshot(warp, lanes)
            for lane in lanes.tolist():
                phases[lane] = barrier.phase | barrier.pending << _PENDING
                if drops:
                    barrier.expected -= int(counts[lane])
                barriers.arrive(warp, barrier, lane, int(counts[lane]), known)
        warp.registers[state] = phases

    return step


def _transaction(
    op: ptx.MbarrierExpectTxOp | ptx.MbarrierArriveExpectTxOp | ptx.MbarrierCompleteTxOp, t: Translator
) -> Step:
    barriers, bytes = Barriers(op, op.bar, t), t.slot(op.bytes)
    sign = -1 if isinstance(op, ptx.MbarrierCompleteTxOp) else 1
    arrives = effects.does(op, effects.Act.ARRIVES, effects.Mbarrier)

    def step(warp: Warp) -> None:
        counts = np.zeros(warp.lanes, np.int64)
        counts[warp.lane_numbers()] = warp.select(warp.registers[bytes])
        for barrier, lanes in barriers.by_row(warp):
            known = snapshot(warp, lanes) if arrives and barriers.shared.shadow is not None else None
            for lane in lanes.tolist():
                barriers.fault(warp, lane, barrier.change(expected=sign * int(counts[lane])))
                if arrives:
                    barriers.arrive(warp, barrier, lane, 1, known)

    return step


def _copies_arrive(op: ptx.CpAsyncMbarrierArriveOp, t: Translator) -> Step:
    barriers, adds = Barriers(op, op.bar, t), op.noinc is None

    def step(warp: Warp) -> None:
        for barrier, lanes in barriers.by_row(warp):
            if adds:
                barriers.fault(warp, int(lanes[0]), barrier.change(-len(lanes)))
            barrier.track(asynchronous.tie(warp, barriers.site, lanes), warp, lanes)
            if warp.launch.completion is Completion.EARLY:
                barrier.land()

    return step


def _is_complete(barrier: Mbarrier, parity: int, completes: bool) -> bool:
    """Whether the phase of a parity is complete; if the look `completes` the operations that it needs, after these."""
    while completes and barrier.arrivals and not barrier.is_complete(parity):
        barrier.land()
    return barrier.is_complete(parity)


def _parities(barriers: Barriers, warp: Warp, value: Value) -> Lanes:
    """The parity that each lane of the warp asks for; a fault if it is not one."""
    whole = np.zeros(warp.lanes, np.int64)
    whole[warp.lane_numbers()] = warp.select(value)
    wrong = (whole != 0) & (whole != 1)
    if wrong.any():
        lane = int(wrong.argmax())
        barriers.fault(warp, lane, f"the parity of a phase is 0 or 1, not {whole[lane]}")
    return whole


_SCOPES = "cluster", None, "cta"
"""The scopes of waits, in the order in which `Mbarrier.acquire` numbers them."""


def _reach(op: ptx.MbarrierTestWaitOp | ptx.MbarrierTryWaitOp | ptx.MbarrierWaitOp) -> int:
    """The scope of a wait, as `Mbarrier.acquire` takes it."""
    return _SCOPES.index(None if op.scope is None else op.scope.data)


def _acquire(barriers: Barriers, barrier: Mbarrier, warp: Warp, parity: int, lanes: Lanes, reach: int) -> None:
    """Tells lanes that have waited for a parity the accesses before it; a remark on a wait without a scope for
    `st.async` of peers: its scope is cta, and that of the release of their bytes cluster (PTX ISA, st.async,
    mbarrier.test_wait), so that nothing there orders the two.
    """
    barrier.acquire(warp, parity, lanes, reach, barriers.site)
    if barrier.counts_peers and _SCOPES[reach] is None and barriers.shared.journal is not None:
        text = (
            f"waits at scope cta, which is that of a wait without a scope, at {barriers.show(warp, barrier.row)}; it "
            "counts st.async of other blocks, whose bytes PTX orders before a wait at scope cluster"
        )
        barriers.shared.journal.remark(barriers.site, text)


def _test(op: ptx.MbarrierTestWaitOp | ptx.MbarrierTryWaitOp | ptx.MbarrierTryWaitStateOp, t: Translator) -> Suspending:
    by_state = isinstance(op, ptx.MbarrierTryWaitStateOp)
    barriers, phase, done = Barriers(op, op.bar, t), t.slot(op.state if by_state else op.parity), t.slot(op.done)
    reach = 1 if isinstance(op, ptx.MbarrierTryWaitStateOp) else _reach(op)

    def look(warp: Warp) -> str:
        barrier, _ = next(barriers.by_row(warp))
        return f"{barriers.show(warp, barrier.row)}, {barrier.missing()}"

    pause = Pause(barriers.site, look)

    def run(warp: Warp) -> Suspension:
        yield pause  # a loop that waits for another warp's arrival lets that warp go on
        given = warp.registers[phase]
        parities = _parities(barriers, warp, given % 2 if by_state else given)
        complete, completes = np.zeros(warp.lanes, bool), warp.launch.chance is None
        for barrier, lanes in barriers.by_row(warp):
            for lane in lanes.tolist():
                complete[lane] = _is_complete(barrier, int(parities[lane]), completes)
            for value in set(parities[lanes[complete[lanes]]].tolist()):
                _acquire(barriers, barrier, warp, value, lanes[complete[lanes] & (parities[lanes] == value)], reach)
        warp.registers[done] = complete

    return Suspending(run)


def _wait(op: ptx.MbarrierWaitOp, t: Translator) -> Suspending:
    barriers, parity, reach = Barriers(op, op.bar, t), t.slot(op.parity), _reach(op)

    def run(warp: Warp) -> Suspension:
        parities = _parities(barriers, warp, warp.registers[parity])
        waits = [
            (barrier, n, lanes[parities[lanes] == n])
            for barrier, lanes in barriers.by_row(warp)
            for n in set(parities[lanes].tolist())
        ]

        def incomplete() -> Iterator[tuple[Mbarrier, int]]:
            return ((barrier, value) for barrier, value, _ in waits if not _is_complete(barrier, value, True))

        def describe() -> tuple[str, str]:
            barrier, value = next(incomplete(), waits[0][:2])
            return barriers.show(warp, barrier.row), f"{barrier.missing()}{barrier.passed(warp, value)}"

        def cause(others_wait: bool) -> str:
            barrier, value = next(incomplete())
            return barrier.cause(warp, value, others_wait)

        def has_begun() -> bool:
            return any(barrier.has_begun(warp, value) for barrier, value in incomplete())

        yield Until(lambda: not any(incomplete()), barriers.site, describe, cause=cause, has_begun=has_begun)
        for barrier, value, lanes in waits:
            _acquire(barriers, barrier, warp, value, lanes, reach)

    return Suspending(run)


PTX_MBARRIER: Rules = {
    ptx.MbarrierInitOp: _init,
    ptx.MbarrierInvalOp: _inval,
    ptx.MbarrierArriveOp: _arrive,
    ptx.MbarrierExpectTxOp: _transaction,
    ptx.MbarrierArriveExpectTxOp: _transaction,
    ptx.MbarrierCompleteTxOp: _transaction,
    ptx.CpAsyncMbarrierArriveOp: _copies_arrive,
    ptx.MbarrierArriveStateOp: _arrive_state,
    ptx.MbarrierTryWaitStateOp: _test,
    ptx.MbarrierTestWaitOp: _test,
    ptx.MbarrierTryWaitOp: _test,
    ptx.MbarrierWaitOp: _wait,
}
