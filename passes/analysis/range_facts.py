# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The range that a comparison implies for its operands, and where the range of a value in a loop may end."""

from xdsl.dialects import arith
from xdsl.ir import Operation, SSAValue

from ...dialects.arith.integer_range import Range
from ...dialects.arith.semantics import constant_of

EQ, NE, SLT, SLE, SGT, SGE, ULT, ULE, UGT, UGE = range(10)
"""The predicates of `arith.cmpi`."""

_OPPOSITE = {EQ: NE, NE: EQ, SLT: SGE, SGE: SLT, SLE: SGT, SGT: SLE}
_SWAPPED = {EQ: EQ, NE: NE, SLT: SGT, SGT: SLT, SLE: SGE, SGE: SLE}
_SIGNED = {ULT: SLT, ULE: SLE, UGT: SGT, UGE: SGE}

MOST_ENDS = 16
"""The most places at which a range in a loop is tried to end."""


def restrict_ranges(known: Range, predicate: int, other: Range, *, left: bool, holds: bool) -> Range:
    """The range of a value that is compared with one in the range `other`, being its left operand or its right one,
    where the comparison holds or where it does not.
    """
    if predicate in _SIGNED:
        if min(known[0], other[0]) < 0:
            return known
        predicate = _SIGNED[predicate]
    if not left:
        predicate = _SWAPPED[predicate]
    if not holds:
        predicate = _OPPOSITE[predicate]
    low, high = known
    match predicate:
        case _ if predicate == EQ:
            low, high = max(low, other[0]), min(high, other[1])
        case _ if predicate == NE and other[0] == other[1]:
            low, high = low + (low == other[0]), high - (high == other[0])
        case _ if predicate == SLT:
            high = min(high, other[1] - 1)
        case _ if predicate == SLE:
            high = min(high, other[1])
        case _ if predicate == SGT:
            low = max(low, other[0] + 1)
        case _ if predicate == SGE:
            low = max(low, other[0])
        case _:
            pass
    return (low, high) if low <= high else known


def ends_in(loop: Operation) -> list[int]:
    """Constants that values in a loop are compared with, and those before them, ascending: where ranges may end."""
    ends: set[int] = set()
    for op in loop.walk():
        if isinstance(op, arith.CmpiOp | arith.MinSIOp | arith.MinUIOp):
            constants = [constant_of(operand) for operand in op.operands]
            ends |= {end for c in constants if c is not None for end in (c - 1, c)}
    return sorted(ends)[:MOST_ENDS]


def grows_by(following: SSAValue, argument: SSAValue) -> SSAValue | None:
    """The increment of a loop's value in each iteration, if it only changes by a sum."""
    sum = following.owner
    if not isinstance(sum, arith.AddiOp):
        return None
    return {sum.lhs: sum.rhs, sum.rhs: sum.lhs}.get(argument)
