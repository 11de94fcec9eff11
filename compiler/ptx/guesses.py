# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Plain loads that guess the first value for a loop of compare-and-swap.

CUDA's headers and its Programming Guide make atomic operations that the hardware lacks so: they load a word, compute
another from it, and swap if memory still holds the first. An outdated value makes the swap fail, and the loop tries
again. So a load counts as relaxed if nothing but such swaps at its address depends on it.
"""

from xdsl.dialects import arith, scf, vector
from xdsl.ir import BlockArgument, Operation, Region, SSAValue
from xdsl.rewriter import Rewriter
from xdsl.traits import is_side_effect_free

from ...dialects.ptx import AtomCasOp, LoadAcquireOp, LoadOp
from ...dialects.ptx.base import LOCAL, float_bits, integer_bits
from .unread import targets_of

_OF_VECTORS = (vector.BroadcastOp, vector.BitcastOp, vector.ExtractOp, vector.InsertOp)
"""Pure operations that xDSL does not mark so."""
_MOST = 200
"""How many uses of a value are looked at."""


def relax_guesses(region: Region) -> None:
    """Makes the loads of a kernel relaxed that only guess a value for compare-and-swap."""
    swaps = {op.ptr for op in region.walk() if isinstance(op, AtomCasOp)}
    if not swaps:
        return
    for op in [op for op in region.walk() if isinstance(op, LoadOp) and op.ptr in swaps and op.ptr.type != LOCAL]:
        is_scalar = (integer_bits(op.result.type) or float_bits(op.result.type) or 0) >= 16
        if is_scalar and _is_guess(op):
            relaxed = LoadAcquireOp(op.ptr, op.result.type, "gpu", relaxed=True)
            relaxed.location = op.location
            Rewriter.replace_op(op, relaxed)


def _is_guess(load: LoadOp) -> bool:
    """Whether all that depends on a load are the operands of swaps at its address, and whether they have succeeded."""
    seen, work, looked, is_compared = set[SSAValue](), list[SSAValue]([load.result]), 0, False
    while work:
        value = work.pop()
        if value in seen:
            continue
        seen.add(value)
        for use in value.uses:
            user, looked = use.operation, looked + 1
            if looked > _MOST:
                return False
            if isinstance(user, AtomCasOp):
                if user.ptr is not load.ptr:
                    return False
                is_compared |= user.compare is value
            elif isinstance(user, arith.CmpiOp | arith.CmpfOp):
                if not any(_is_swapped(operand) for operand in user.operands):
                    return False
            elif (passed := _passed(user, use.index)) is None:
                return False
            else:
                work += passed
    return is_compared


def _is_swapped(value: SSAValue) -> bool:
    """Whether a value is what a swap has found, maybe as another type."""
    while isinstance(value.owner, arith.BitcastOp | arith.ExtUIOp | arith.ExtSIOp | arith.TruncIOp):
        value = value.owner.operands[0]
    return isinstance(value.owner, AtomCasOp)


def _passed(user: Operation, index: int) -> "list[SSAValue] | list[BlockArgument] | None":
    """The values that an operand becomes; None if it has another effect."""
    if isinstance(user, scf.YieldOp) and isinstance(around := user.parent_op(), scf.IfOp):
        return [around.results[index]]
    if targets := list(targets_of(user, index)):
        return [argument for _, argument, _ in targets]
    is_pure = isinstance(user, _OF_VECTORS) or (not user.successors and is_side_effect_free(user))
    return list(user.results) if user.results and is_pure else None
