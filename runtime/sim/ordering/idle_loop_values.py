# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Values of a loop that nothing in it depends on, such as a count of attempts: a warp that differs in these alone goes
round as before.
"""

from typing import TYPE_CHECKING

from xdsl.dialects import scf
from xdsl.ir import Operation, SSAValue
from xdsl.traits import is_side_effect_free

from ....dialects.kernel import KernelOp

if TYPE_CHECKING:
    from ..translate import Translator


def idle_slots(op: Operation, t: "Translator") -> frozenset[int]:
    """The registers of values of the loop without a bound around an operation, or that it is, on which neither the
    loop's condition nor anything that others see depends. A loop within another one has none: its values may count
    there.
    """
    loops: list[Operation] = []
    parent: Operation | None = op
    while parent is not None and not isinstance(parent, KernelOp):
        if isinstance(parent, scf.WhileOp | scf.ForOp):
            loops.append(parent)
        parent = parent.parent_op()
    if parent is None or len(loops) != 1 or not isinstance(loops[0], scf.WhileOp):
        return frozenset()
    return frozenset(t.slot(value) for value in _idle(loops[0]))


def _idle(loop: scf.WhileOp) -> set[SSAValue]:
    test, body = loop.before_region.block, loop.after_region.block
    condition, again = test.last_op, body.last_op
    assert isinstance(condition, scf.ConditionOp)
    assert isinstance(again, scf.YieldOp)
    carried: dict[SSAValue, SSAValue] = dict(
        zip((*test.args, *body.args), (*again.operands, *condition.operands[1:]), strict=True)
    )
    pure = {op for op in loop.walk() if op is not loop and not op.regions and is_side_effect_free(op)}
    pure -= {condition, again}
    needed: list[SSAValue] = [condition.operands[0]]
    for op in loop.walk():
        if op not in pure and op not in (loop, condition, again):
            needed += op.operands
    seen: set[SSAValue] = set()
    while needed:
        value = needed.pop()
        if value in seen:
            continue
        seen.add(value)
        if value in carried:
            needed.append(carried[value])
        elif isinstance(value.owner, Operation) and value.owner in pure:
            needed += value.owner.operands
    inside: set[SSAValue] = {*carried, *(result for op in pure for result in op.results)}
    return inside - seen
