# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The values of loops. A counter may never get where the condition wants it, such as one that goes in the wrong
direction: the loop ends, if at all, when the integer has wrapped. And nothing in a loop may depend on a value, such as
a count of attempts: a warp that differs only in such values goes round as before.
"""

from collections.abc import Callable, Sequence
from math import gcd
from typing import TYPE_CHECKING

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IntegerAttr, IntegerType
from xdsl.ir import Block, Operation, SSAValue
from xdsl.traits import is_side_effect_free
from xdsl.utils.hints import isa

from ....base.errors import Code
from ....dialects.kernel import KernelOp

if TYPE_CHECKING:
    from ..faults import Site
    from ..translate import Translator
    from ..warp import Warp

_PREDICATES = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")
"""Those of arith.cmpi, by their numbers."""
_SWAPPED = {"l": "g", "g": "l"}


def never_ending(op: scf.WhileOp, t: "Translator") -> "Callable[[Warp, Site], None] | None":
    """A check of a loop that goes on while a counter compares with a bound; None for another loop.

    The check raises SimulationError (E3231) where the counter of the first active lane never gets there, or goes away
    from the bound and needs more iterations than the launch may have steps. The budget ends loops that are only long.
    """
    test, body = op.before_region.block, op.after_region.block
    end, again = test.last_op, body.last_op
    assert isinstance(end, scf.ConditionOp)
    assert again is not None
    compare = end.operands[0].owner
    if not isinstance(compare, arith.CmpiOp) or not isa(compare.lhs.type, IntegerType):
        return None
    name, value, bound = _PREDICATES[compare.predicate.value.data], compare.lhs, compare.rhs
    if value.owner is not test:
        value, bound = bound, value
        name = name[0] + _SWAPPED.get(name[1], name[1]) + name[2:]
    step = _step(value, test, end.operands[1:], body, again.operands)
    if name == "eq" or not step or bound.owner is test or _is_within(bound, op):
        return None
    counter, limit, width = t.slot(value), t.slot(bound), compare.lhs.type.width.data

    def check(warp: "Warp", site: "Site") -> None:
        now, last = (int(warp.select(warp.registers[slot])[0]) for slot in (counter, limit))
        needed = iterations_left(name, now, last, step, width)
        if needed is None or (step * (last - now) <= 0 and needed > warp.launch.budget.steps):
            text = f"the loop does not end: its counter is {now} and grows by {step}, its bound is {last}"
            hint = "let the counter go towards the bound, and compare so that it cannot step over it"
            warp.fault(Code.SIM_STUCK, site, int(warp.lane_numbers()[0]), text, hint)

    return check


def _step(
    value: SSAValue, test: Block, passed: Sequence[SSAValue], body: Block, again: Sequence[SSAValue]
) -> int | None:
    """The constant that each iteration adds to an argument of a loop's test; None if it is not a constant."""
    if value not in test.args or value not in passed:
        return None
    total = again[list[SSAValue](test.args).index(value)].owner
    if not isinstance(total, arith.AddiOp | arith.SubiOp):
        return None
    own = body.args[passed.index(value)]
    by = total.rhs if total.lhs is own else total.lhs if total.rhs is own else None
    if by is None or not isinstance(by.owner, arith.ConstantOp) or not isa(by.owner.value, IntegerAttr):
        return None
    number = by.owner.value.value.data
    if isinstance(total, arith.SubiOp):
        return -number if total.lhs is own else None
    return number


def _is_within(value: SSAValue, op: scf.WhileOp) -> bool:
    owner = value.owner.parent_op() if isinstance(value.owner, Block) else value.owner
    return owner is op or (owner is not None and op.is_ancestor(owner) and not isinstance(owner, arith.ConstantOp))


def iterations_left(name: str, value: int, bound: int, step: int, width: int) -> int | None:
    """The number of the first iteration in which a condition on wrapping integers fails; None if it never does."""
    size = 1 << width
    value, bound = value % size, bound % size
    if name == "ne":
        common = gcd(step, size)
        ways, distance = size // common, (bound - value) % size
        return None if distance % common else distance // common * pow(step // common, -1, ways) % ways
    if name[0] == "s":  # as unsigned numbers in the same order
        value, bound = value ^ size >> 1, bound ^ size >> 1
    if name[1] == "g":  # downwards is upwards, seen from the other end
        value, bound, step = size - 1 - value, size - 1 - bound, -step
    end = bound + (name[2] == "e")
    if value >= end:
        return 0
    if end == size:
        return None
    if step > 0:
        return -(-(end - value) // step)
    return value // -step + 1  # it wraps, to a number beyond the bound


def is_in_loop(op: Operation) -> bool:
    """Whether an operation is in a loop without a bound: one of `scf`, or blocks whose branches come back."""
    block = op.parent
    while block is not None and (parent := block.parent_op()) is not None:
        if isinstance(parent, scf.WhileOp) or _comes_back(block):
            return True
        block = parent.parent
    return False


def _comes_back(block: Block) -> bool:
    """Whether branches lead from a block to itself."""
    reached, work = set[Block](), [block]
    while work:
        last = work.pop().last_op
        new = [] if last is None else [successor for successor in last.successors if successor not in reached]
        reached.update(new)
        work += new
    return block in reached


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
