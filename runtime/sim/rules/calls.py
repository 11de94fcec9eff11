# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rules for functions: calls, and the ends of blocks, which `functions` follows."""

from xdsl.dialects import cf, func
from xdsl.ir import Operation

from ....base.errors import Code
from ..called_functions import callee, function
from ..events import Step, Suspending, Suspension
from ..faults import site_of
from ..translate import Rules, Translator
from ..values import varies
from ..warp import Warp


def _call(op: func.CallOp, t: Translator) -> Suspending:
    called = function(callee(op, op.callee.string_value()), t)
    sources, targets = t.slots(op.arguments), t.slots(op.results)

    def run(warp: Warp) -> Suspension:
        results = yield from called.run(warp, [warp.registers[slot] for slot in sources])
        for slot, value in zip(targets, results, strict=True):
            warp.registers[slot] = value

    return Suspending(run)


def _end(op: Operation, t: Translator) -> None:
    """Does nothing: the function that contains the block follows its end."""


def _assert(op: cf.AssertOp, t: Translator) -> Step:
    condition, site, text = t.slot(op.arg), site_of(op), op.msg.data

    def step(warp: Warp) -> None:
        holds = warp.registers[condition]
        warp.fault_where(~holds if varies(holds) else not holds, Code.SIM_ASSERT, site, f"assertion failed: {text}")

    return step


CALLS: Rules = {
    func.CallOp: _call,
    cf.BranchOp: _end,
    cf.ConditionalBranchOp: _end,
    cf.AssertOp: _assert,
}
