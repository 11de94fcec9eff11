# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rules for branches and loops: lanes that take the other way, or have left, are masked off and wait."""

from itertools import count

import numpy as np
from xdsl.dialects import scf

from ....base.errors import Code
from ..events import BODIES_BETWEEN_PAUSES, Pause, Suspending, Suspension
from ..faults import site_of
from ..translate import Loop, Rules, TranslatedBlock, Translator, only_computes
from ..values import Value, ValueKind, as_unsigned, kind_of, merge, per_lane, varies
from ..warp import Bools, Warp


def gather(warp: Warp, slots: tuple[int, ...]) -> list[Value]:
    """The values of some slots."""
    registers = warp.registers
    return [registers[slot] for slot in slots]


def assign(warp: Warp, slots: tuple[int, ...], values: list[Value]) -> None:
    """Sets the values of some slots."""
    registers = warp.registers
    for slot, value in zip(slots, values, strict=True):
        registers[slot] = value


def _is_choice(op: scf.IfOp) -> bool:
    """Whether a branch only chooses among values."""
    inner = [each for region in op.regions for each in region.walk()]
    return bool(op.results) and all(only_computes(each) or isinstance(each, scf.YieldOp) for each in inner)


def _if(op: scf.IfOp, t: Translator) -> Suspending:
    condition, site = t.slot(op.cond), site_of(op)
    then = t.block(op.true_region.block)
    otherwise = t.block(op.false_region.block) if op.false_region.blocks else None
    results = t.slots(op.results)
    kinds = [kind_of(result.type) for result in op.results]
    selects = _is_choice(op)

    def side(warp: Warp, code: TranslatedBlock | None) -> Suspension:
        if code is not None:
            yield from code.enter(warp)
            assign(warp, results, gather(warp, code.results))

    def run(warp: Warp) -> Suspension:
        chosen = warp.registers[condition]
        if not selects:
            warp.note(site, "decides by", chosen)
        if not varies(chosen):
            yield from side(warp, then if chosen else otherwise)
            return
        live = warp.live()
        taken = live & chosen
        number = int(np.count_nonzero(taken))
        if number in (0, warp.active):
            yield from side(warp, then if number else otherwise)
            return
        before = warp.mask_state()
        warp.narrow(taken)
        yield from side(warp, then)
        ours = gather(warp, results)
        warp.narrow(live & ~chosen)
        yield from side(warp, otherwise)
        warp.restore(before)
        theirs = gather(warp, results)
        triples = zip(ours, theirs, kinds, strict=True)
        assign(warp, results, [merge(taken, mine, other, kind) for mine, other, kind in triples])

    return Suspending(run)


class _Results:
    """The results of a loop that lanes leave at different times."""

    def __init__(self, kinds: list[ValueKind | None]) -> None:
        self.kinds = kinds
        self.values: list[Value] | None = None

    def leave(self, lanes: Bools, values: list[Value]) -> None:
        """Sets the results of `lanes`."""
        if self.values is None:
            self.values = values
        elif lanes.any():
            pairs = zip(values, self.values, self.kinds, strict=True)
            self.values = [merge(lanes, new, old, kind) for new, old, kind in pairs]


def _for(op: scf.ForOp, t: Translator) -> Suspending:
    site = site_of(op)
    bounds = t.slots((op.lb, op.ub, op.step))
    inits, results = t.slots(op.iter_args), t.slots(op.results)
    body = t.block(op.body.block)
    t.loops.append(Loop(site, body))
    counter, carried = body.args[0], body.args[1:]
    index = t.kind(op.lb)
    kinds = [kind_of(result.type) for result in op.results]

    def run(warp: Warp) -> Suspension:
        first, limit, step = gather(warp, bounds)
        bad = (step <= 0) & (first < limit)  # nothing computes with the step of a loop without iterations
        warp.fault_where(bad, Code.SIM_ARITHMETIC, site, "the step of the loop is not positive")
        for bound in (first, limit, step):
            warp.note(site, "decides by", bound)
        step = np.maximum(step, 1) if varies(step) else max(step, 1)
        values = gather(warp, inits)
        if not any(varies(bound) for bound in (first, limit, step)):
            registers = warp.registers
            for value in range(first, limit, step):
                registers[counter] = value
                if carried:
                    assign(warp, carried, values)
                yield from body.enter(warp)
                if carried:
                    values = gather(warp, body.results)
            assign(warp, results, values)
            return
        before = warp.mask_state()
        live = warp.live()
        value, limit, step = (per_lane(bound, warp.lanes, index) for bound in (first, limit, step))
        distance = as_unsigned(limit - value - 1, index)  # of at least one iteration, without leaving the type
        trips = np.where(value < limit, distance // as_unsigned(step, index) + 1, 0)
        ended = _Results(kinds)
        done = 0
        for trip in np.unique(trips[live]).tolist():
            if trip:
                warp.narrow(live & (trips >= trip))
            for _ in range(done, trip):
                warp.registers[counter] = value
                assign(warp, carried, values)
                yield from body.enter(warp)
                values = gather(warp, body.results)
                value = value + step
            ended.leave(live & (trips == trip), values)
            done = trip
        warp.restore(before)
        assert ended.values is not None
        assign(warp, results, ended.values)

    return Suspending(run)


def _while(op: scf.WhileOp, t: Translator) -> Suspending:
    from ..ordering.loop_values import idle_slots, never_ending

    inits, results, site = t.slots(op.arguments), t.slots(op.results), site_of(op)
    test, body = t.block(op.before_region.block), t.block(op.after_region.block)
    t.loops.append(Loop(site, test))
    condition, passed = test.results[0], test.results[1:]
    kinds = [kind_of(result.type) for result in op.results]
    pause, check = Pause(site, idle=idle_slots(op, t)), never_ending(op, t)

    def run(warp: Warp) -> Suspension:
        before = warp.mask_state()
        ended = _Results(kinds)
        values = gather(warp, inits)
        for trip in count():
            if trip and trip % BODIES_BETWEEN_PAUSES == 0:
                if warp.is_several and not warp.is_of_whole_blocks:  # it may wait for a warp that is not in it
                    warp.leave_lockstep()
                yield pause
            assign(warp, test.args, values)
            if trip == BODIES_BETWEEN_PAUSES and check is not None:
                check(warp, site)
            yield from test.enter(warp)
            going = warp.registers[condition]
            warp.note(site, "decides by", going)
            values = gather(warp, passed)
            if varies(going):
                staying = going if warp.mask is None else warp.mask & going
                left = np.count_nonzero(staying)
                if left < warp.active:
                    ended.leave(warp.live() & ~staying, values)
                    if not left:
                        break
                    warp.narrow(staying)
            elif not going:
                ended.leave(warp.live(), values)
                break
            assign(warp, body.args, values)
            yield from body.enter(warp)
            values = gather(warp, body.results)
        warp.restore(before)
        assert ended.values is not None
        assign(warp, results, ended.values)

    return Suspending(run)


SCF: Rules = {scf.IfOp: _if, scf.ForOp: _for, scf.WhileOp: _while}
