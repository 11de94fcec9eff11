# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Plain loads that guess the first value for a loop of compare-and-swap.

CUDA's headers and its Programming Guide make atomic operations that the hardware lacks so: they load a word, compute
another from it, and swap if memory still holds the first. An outdated value makes the swap fail, and the loop tries
again. So a load counts as relaxed if nothing depends on it but swaps at its address that compare with the loaded
value, that a loop repeats, and whose success is tested. A swap without a second attempt loses its update, and its load
stays a plain one.
"""

from collections.abc import Sequence

from xdsl.dialects import arith, scf, vector
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.rewriter import Rewriter
from xdsl.traits import is_side_effect_free

from ...dialects.ptx import AtomCasOp, LoadAcquireOp, LoadOp
from ...dialects.ptx.base import LOCAL, float_bits, integer_bits
from .unread import targets_of

_OF_VECTORS = (vector.BroadcastOp, vector.BitcastOp, vector.ExtractOp, vector.InsertOp)
"""Pure operations that xDSL does not mark so."""
_SAME_BITS = (arith.BitcastOp, vector.BitcastOp, arith.ExtUIOp, arith.ExtSIOp)
"""Operations whose result tells all bits of the operand."""
_EQUALITIES = {arith.CmpiOp: (0, 1), arith.CmpfOp: (1, 6, 8, 13)}
"""The predicates of comparisons that ask whether two values are equal: `eq` and `ne`, `oeq`, `one`, `ueq` and `une`."""
_MOST = 200
"""How many uses of a value, and blocks of a loop, are looked at."""


def relax_guesses(region: Region) -> None:
    """Makes the loads of a kernel relaxed that only guess a value for compare-and-swap."""
    swaps = {op.ptr for op in region.walk() if isinstance(op, AtomCasOp)}
    if not swaps:
        return
    for op in [op for op in region.walk() if isinstance(op, LoadOp) and op.ptr in swaps and op.ptr.type != LOCAL]:
        if _is_guess(op):
            relaxed = LoadAcquireOp(op.ptr, op.result.type, "gpu", relaxed=True)
            relaxed.location = op.location
            Rewriter.replace_op(op, relaxed)


def _is_guess(load: LoadOp) -> bool:
    """Whether all that depends on a load are the operands of swaps at its address, and whether they have succeeded."""
    bits, seen, work, looked = _bits(load.result), set[tuple[SSAValue, bool]](), [(load.result, True)], 0
    swaps, tested = set[AtomCasOp](), set[SSAValue]()
    while work:
        value, is_same = work.pop()
        if (value, is_same) in seen:
            continue
        seen.add((value, is_same))
        for use in value.uses:
            user, looked = use.operation, looked + 1
            if looked > _MOST:
                return False
            if isinstance(user, AtomCasOp):
                if user.ptr is not load.ptr or _bits(user.value) != bits:
                    return False
                swaps.add(user)
            elif is_same and (found := _test_of_swap(user, use.index, load.ptr)):
                tested.add(found)
            elif (passed := _passed(user, use.index)) is None:
                return False
            else:
                same = is_same and _passes_same(user, use.index, bits)
                work += [(value, same) for value in passed]
    compared = {swap.compare for swap in swaps}
    is_exact = all((value, True) in seen and (value, False) not in seen for value in compared)
    is_tested = tested == {swap.result for swap in swaps}
    return bool(swaps) and is_exact and is_tested and all(_tries_again(swap) for swap in swaps)


def _bits(value: SSAValue) -> int:
    """The bits of a scalar, otherwise 0."""
    return integer_bits(value.type) or float_bits(value.type) or 0


def _test_of_swap(user: Operation, index: int, ptr: SSAValue) -> SSAValue | None:
    """The result of a swap at an address, if an operation asks whether an operand equals it, maybe as another type."""
    if not isinstance(user, arith.CmpiOp | arith.CmpfOp) or user.predicate.value.data not in _EQUALITIES[type(user)]:
        return None
    value = user.operands[1 - index]
    while isinstance(value.owner, arith.BitcastOp | arith.ExtUIOp | arith.ExtSIOp):
        value = value.owner.operands[0]
    return value if isinstance(value.owner, AtomCasOp) and value.owner.ptr is ptr else None


def _tries_again(op: Operation) -> bool:
    """Whether the first branch after an operation has a side from which all ways lead back to it."""
    while isinstance(around := op.parent_op(), scf.IfOp):
        op = around
    own = op.parent_block()
    following = _successors(own)
    for _ in range(_MOST):
        if len(following) != 1:
            break
        following = _successors(following[0])
    return any(_leads_back(block, own) for block in following)


def _leads_back(block: Block, own: Block | None) -> bool:
    """Whether no way from a block ends without another block; False if it has too many blocks."""
    seen, work = {own}, [block]
    while work:
        block = work.pop()
        if block not in seen:
            seen.add(block)
            if not (following := _successors(block)) or len(seen) > _MOST:
                return False
            work += following
    return True


def _successors(block: Block | None) -> Sequence[Block]:
    return block.last_op.successors if block and block.last_op else ()


def _passes_same(user: Operation, index: int, bits: int) -> bool:
    """Whether an operation hands all bits of an operand on as they are, or of a loaded value of so many bits."""
    if isinstance(user, arith.TruncIOp):
        return _bits(user.results[0]) >= bits
    is_chosen = isinstance(user, arith.SelectOp) and index > 0
    return not user.results or is_chosen or isinstance(user, _SAME_BITS)


def _passed(user: Operation, index: int) -> Sequence[SSAValue] | None:
    """The values that an operand becomes; None if it has another effect."""
    if isinstance(user, scf.YieldOp) and isinstance(around := user.parent_op(), scf.IfOp):
        return [around.results[index]]
    if targets := list(targets_of(user, index)):
        return [argument for _, argument, _ in targets]
    is_pure = isinstance(user, _OF_VECTORS) or (not user.successors and is_side_effect_free(user))
    return user.results if user.results and is_pure else None
