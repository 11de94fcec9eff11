# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Plain loads that guess the first value for a loop of compare-and-swap.

CUDA's headers and its Programming Guide make atomic operations that the hardware lacks so: they load a word, compute
another from it, and swap if memory still holds the first. An outdated value makes the swap fail, and the loop tries
again. So a load counts as relaxed if nothing depends on it but swaps at its address that compare with the loaded
value, that a loop repeats, and whose success is tested. A swap without a second attempt loses its update, and its load
stays a plain one. Behind a swap that has succeeded the loaded value is the one that memory held, and may have any use.
"""

from collections.abc import Sequence

from xdsl.dialects import arith, scf, vector
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.rewriter import Rewriter
from xdsl.traits import is_side_effect_free

from ...dialects.ptx import AtomCasOp, LoadAcquireOp, LoadOp
from ...dialects.ptx.base import LOCAL, float_bits, integer_bits
from .facts import Fact, Facts, successors_of, targets_of

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
    facts = Facts(region)
    for op in [op for op in region.walk() if isinstance(op, LoadOp) and op.ptr in swaps and op.ptr.type != LOCAL]:
        if _is_guess(op, facts):
            relaxed = LoadAcquireOp(op.ptr, op.result.type, "gpu", relaxed=True)
            relaxed.location = op.location
            Rewriter.replace_op(op, relaxed)


def _is_guess(load: LoadOp, facts: Facts) -> bool:
    """Whether all that depends on a load are the operands of swaps at its address, whether they have succeeded, and
    what follows a success.
    """
    bits, seen, looked = _bits(load.result), set[_Seen](), 0
    work: list[_Seen] = [(load.result, True, load.result)]
    swaps, tested = set[AtomCasOp](), set[SSAValue]()
    while work:
        value, is_same, root = work.pop()
        if (value, is_same, root) in seen:
            continue
        seen.add((value, is_same, root))
        for use in value.uses:
            user, looked = use.operation, looked + 1
            if looked > _MOST:
                return False
            targets = list(targets_of(user, use.index))
            known = [*facts.at(user), *(fact for _, _, taken in targets for fact in taken)]
            if root is not None and any(_has_succeeded(fact, load, root) for fact in known):
                continue
            if isinstance(user, AtomCasOp):
                if user.ptr is not load.ptr or _bits(user.value) != bits:
                    return False
                swaps.add(user)
            elif is_same and (found := _test_of_swap(user, use.index, load)):
                tested.add(found)
            elif targets:
                work += [(argument, is_same, argument if is_same else None) for _, argument, _ in targets]
            elif isinstance(user, scf.YieldOp) and isinstance(around := user.parent_op(), scf.IfOp):
                result = around.results[use.index]
                work.append((result, is_same, result if is_same else root))
            elif (passed := _passed(user)) is None:
                return False
            else:
                same = is_same and _passes_same(user, use.index, bits)
                work += [(value, same, root) for value in passed]
    compared, reached = {swap.compare for swap in swaps}, {(value, same) for value, same, _ in seen}
    is_exact = all((value, True) in reached and (value, False) not in reached for value in compared)
    is_tested = tested == {swap.result for swap in swaps}
    return bool(swaps) and is_exact and is_tested and all(_tries_again(swap) for swap in swaps)


_Seen = tuple[SSAValue, bool, SSAValue | None]
"""A value that depends on a load, whether it has all bits of it, and the value at which ways meet, or the load, from
which it was computed alone; None where ways have met since.
"""


def _has_succeeded(fact: Fact, load: LoadOp, root: SSAValue) -> bool:
    """Whether a fact says that a swap has found a value, or all bits of it, at the address of a load.

    The value and all that was computed from it are then those of the swap that has succeeded: a place that only the
    success leads to is not reached by a way on which the value was set again, but the swap not tried.
    """
    predicate, holds = fact
    test = predicate.owner
    if not isinstance(test, arith.CmpiOp) or test.predicate.value.data != (0 if holds else 1):
        return False
    bits = _bits(load.result)
    for swapped, expected in ((test.lhs, test.rhs), (test.rhs, test.lhs)):
        swap = _whole(swapped, bits).owner
        if isinstance(swap, AtomCasOp) and swap.ptr is load.ptr and _whole(expected, bits) is root:
            return _whole(swap.compare, bits) is root
    return False


def _whole(value: SSAValue, bits: int) -> SSAValue:
    """The value that a number was converted from, as long as that keeps this many bits."""
    while isinstance(op := value.owner, (*_SAME_BITS, arith.TruncIOp)) and _bits(value) >= bits:
        value = op.operands[0]
    return value


def _bits(value: SSAValue) -> int:
    """The bits of a scalar, otherwise 0."""
    return integer_bits(value.type) or float_bits(value.type) or 0


def _test_of_swap(user: Operation, index: int, load: LoadOp) -> SSAValue | None:
    """The result of a swap at a load's address, if an operation asks whether an operand equals it, maybe as another
    type.
    """
    if not isinstance(user, arith.CmpiOp | arith.CmpfOp) or user.predicate.value.data not in _EQUALITIES[type(user)]:
        return None
    value = _whole(user.operands[1 - index], _bits(load.result))
    return value if isinstance(value.owner, AtomCasOp) and value.owner.ptr is load.ptr else None


def _tries_again(op: Operation) -> bool:
    """Whether the first branch after an operation has a side from which all ways lead back to it."""
    while isinstance(around := op.parent_op(), scf.IfOp):
        op = around
    own = op.parent_block()
    following = [] if own is None else successors_of(own)
    for _ in range(_MOST):
        if len(following) != 1:
            break
        following = successors_of(following[0])
    return any(_leads_back(block, own) for block in following)


def _leads_back(block: Block, own: Block | None) -> bool:
    """Whether no way from a block ends without another block; False if it has too many blocks."""
    seen, work = {own}, [block]
    while work:
        block = work.pop()
        if block not in seen:
            seen.add(block)
            if not (following := successors_of(block)) or len(seen) > _MOST:
                return False
            work += following
    return True


def _passes_same(user: Operation, index: int, bits: int) -> bool:
    """Whether an operation hands all bits of an operand on as they are, or of a loaded value of this many bits."""
    if isinstance(user, arith.TruncIOp):
        return _bits(user.results[0]) >= bits
    is_chosen = isinstance(user, arith.SelectOp) and index > 0
    return not user.results or is_chosen or isinstance(user, _SAME_BITS)


def _passed(user: Operation) -> Sequence[SSAValue] | None:
    """The values that an operand becomes; None if it has another effect."""
    is_pure = isinstance(user, _OF_VECTORS) or (not user.successors and is_side_effect_free(user))
    return user.results if user.results and is_pure else None
