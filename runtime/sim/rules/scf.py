# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rules for branches: lanes that take the other way are masked off and wait."""

import numpy as np
from xdsl.dialects import scf

from ..events import Suspending, Suspension
from ..faults import site_of
from ..translate import Code, Rules, Translator
from ..values import Value, kind_of, merge, varies
from ..warp import Warp


def gather(warp: Warp, slots: tuple[int, ...]) -> list[Value]:
    """The values of some slots."""
    registers = warp.registers
    return [registers[slot] for slot in slots]


def assign(warp: Warp, slots: tuple[int, ...], values: list[Value]) -> None:
    """Sets the values of some slots."""
    registers = warp.registers
    for slot, value in zip(slots, values, strict=True):
        registers[slot] = value


def _if(op: scf.IfOp, t: Translator) -> Suspending:
    condition, site = t.slot(op.cond), site_of(op)
    then = t.block(op.true_region.block)
    otherwise = t.block(op.false_region.block) if op.false_region.blocks else None
    results = t.slots(op.results)
    kinds = [kind_of(result.type) for result in op.results]

    def side(warp: Warp, code: Code | None) -> Suspension:
        if code is not None:
            yield from code.enter(warp)
            assign(warp, results, gather(warp, code.results))

    def run(warp: Warp) -> Suspension:
        chosen = warp.registers[condition]
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


SCF: Rules = {scf.IfOp: _if}
