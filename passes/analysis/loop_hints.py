# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The attribute `unroll` of a loop: its meaning, and whether it is possible."""

from typing import cast

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IntegerAttr, UnitAttr
from xdsl.ir import Block, Operation, SSAValue

from ...dialects.arith.semantics import constant_of

UNROLL = "unroll"
"""The attribute of an scf.for that is unrolled completely if its number of iterations is known."""
MAX_UNROLL = 1024
"""The most iterations that a loop can be asked to do in one."""
MAX_COPIES = 1 << 14
"""The most copies of a loop's body that hints may ask for: LLVM takes seconds for these, and four times as long for
twice as many.
"""


def unroll_count(loop: Operation) -> int | None:
    """How many iterations a loop is to do in one: 0 for all, None if the assembler decides: without a hint, and where
    the hint asks for all iterations, whose number only the run knows.
    """
    hint = loop.attributes.get(UNROLL)
    if isinstance(hint, IntegerAttr):
        return cast("IntegerAttr", hint).value.data
    return None if hint is None or cannot_unroll(loop) else 0


def trip_values(loop: scf.ForOp) -> range | None:
    """The values of the induction variable, where the bounds are constant."""
    low, high, step = (constant_of(v) for v in (loop.lb, loop.ub, loop.step))
    if low is None or high is None or step is None or step < 1:
        return None
    return range(low, high, step)


def own_copies(loop: scf.ForOp) -> int:
    """How many copies of a loop's body its hint asks for, where that is known; 1 without a hint."""
    count, trips = unroll_count(loop), trip_values(loop)
    if count is None:
        return 1
    known = count or 1 if trips is None else len(trips)
    return max(min(known, count) if count else known, 1)


def stays_a_loop(op: Operation) -> bool:
    """Whether an operation is a loop that is one still when LLVM has followed the hints."""
    if not isinstance(op, scf.ForOp):
        return isinstance(op, scf.WhileOp)
    count, trips = unroll_count(op), trip_values(op)
    return count is None or (count > 0 and (trips is None or len(trips) > count))


def body_copies(loop: scf.ForOp) -> int:
    """How many copies of a loop's body its hint and those of the loops around it ask for, where that is known."""
    copies = 1
    around: Operation | None = loop
    while around is not None:
        if isinstance(around, scf.ForOp):
            copies *= own_copies(around)
        around = around.parent_op()
    return copies


def find_malformed_hint(op: Operation) -> str | None:
    """The problem with the hint of an operation; None for a valid one."""
    hint = op.attributes.get(UNROLL)
    if hint is None:
        return None
    if not isinstance(op, scf.ForOp):
        return "only scf.for can be unrolled"
    if isinstance(hint, UnitAttr):
        return None
    if not isinstance(hint, IntegerAttr) or not 1 <= cast("IntegerAttr", hint).value.data <= MAX_UNROLL:
        return f"{{unroll}} unrolls completely, {{unroll = 4 : i64}} by a number from 1 to {MAX_UNROLL}"
    return None


def cannot_unroll(op: Operation) -> bool:
    """Whether a loop asks for complete unrolling although its number of iterations is unknown."""
    if not isinstance(op, scf.ForOp) or not isinstance(op.attributes.get(UNROLL), UnitAttr):
        return False
    return not all(map(_known_once_unrolled, (op.lb, op.ub, op.step)))


def _known_once_unrolled(value: SSAValue) -> bool:
    """Whether a value is a constant once the loops around it are unrolled."""
    arithmetic = arith.SignlessIntegerBinaryOperation | arith.ExtSIOp | arith.TruncIOp | arith.IndexCastOp
    waiting, seen = [value], set[SSAValue]()
    while waiting:
        value = waiting.pop()
        if value in seen or constant_of(value) is not None:
            continue
        seen.add(value)
        owner = value.owner
        if isinstance(owner, Block):
            loop = owner.parent_op()
            if not (isinstance(loop, scf.ForOp) and value is owner.args[0] and unroll_count(loop) == 0):
                return False
        elif not isinstance(owner, arithmetic):
            return False
        else:
            waiting.extend(owner.operands)
    return True
