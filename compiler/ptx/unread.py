# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Undefined values that no thread reads become zeros.

LLVM guards a load and the uses of its result by branches on one predicate. Where the ways meet between them, the
register is undefined in the threads that did not load. They never read it, since the predicate is the same; but the
simulator runs a kernel that carries undefined values several times. So a value is replaced if each use of it is behind
a branch that such a thread does not take.
"""

from typing import cast

from xdsl.dialects import arith, scf, ub
from xdsl.dialects.builtin import Float32Type, FloatAttr, IntegerAttr
from xdsl.ir import Block, Region, SSAValue
from xdsl.rewriter import Rewriter

from ...dialects.ptx.base import float_bits, integer_bits
from .facts import Fact, Facts, successors_of, targets_of

_MOST = 200
"""How many uses of a value are looked at."""


def replace_unread(region: Region) -> None:
    """Replaces undefined numbers that no thread reads by zeros."""
    undefined = [op for op in region.walk() if isinstance(op, ub.PoisonOp)]
    if not undefined:
        return
    search = _Search(region)
    for op in undefined:
        type = op.result.type
        bits = integer_bits(type)
        if bits is not None:
            zero = arith.ConstantOp(IntegerAttr(0, bits))
        elif float_bits(type) is not None:
            zero = arith.ConstantOp(FloatAttr(0.0, cast("Float32Type", type)))
        else:
            continue
        if search.is_unread(op.result):
            zero.location = op.location
            Rewriter.replace_op(op, zero)


class _Search:
    """The uses of a value in a kernel, and the facts at them."""

    def __init__(self, region: Region) -> None:
        self.facts = Facts(region)

    def is_unread(self, value: SSAValue) -> bool:
        """Whether no thread with this value reads it."""
        self.looked = 0
        return self._unread(value, frozenset(self.facts.at(value.owner)), set())

    def _unread(self, value: SSAValue, facts: frozenset[Fact], seen: set[SSAValue]) -> bool:
        if value in seen:
            return True
        seen.add(value)
        for use in value.uses:
            self.looked += 1
            if self.looked > _MOST:
                return False
            user, block = use.operation, self.facts.outer(use.operation)
            holds = {*facts, *self.facts.at(user)}
            targets = list(targets_of(user, use.index))
            if isinstance(user, scf.YieldOp) and isinstance(around := user.parent_op(), scf.IfOp):
                if not self._contradict(holds, value, block) and not self._unread(
                    around.results[use.index], frozenset(holds), seen
                ):
                    return False
                continue
            if not targets:
                if not self._contradict(holds, value, block):
                    return False
                continue
            for target, argument, taken in targets:
                on_edge = frozenset({*holds, *taken})
                if not self._contradict(on_edge, value, block) and not self._unread(argument, on_edge, seen):
                    return False
                assert target is argument.owner
        return True

    def _contradict(self, facts: "set[Fact] | frozenset[Fact]", value: SSAValue, user: Block) -> bool:
        """Whether a thread cannot have all these facts, of predicates that stay as they are from the value to its
        user.
        """
        for predicate, holds in facts:
            if (predicate, not holds) in facts and not self._changes(predicate, self.facts.outer(value.owner), user):
                return True
        return False

    def _changes(self, predicate: SSAValue, begin: Block, user: Block) -> bool:
        """Whether a predicate may be computed again on a way from a block to another that does not come back to it."""
        home = self.facts.outer(predicate.owner)
        if home is self.facts.blocks[0]:
            return False
        if home is begin:
            return isinstance(predicate.owner, Block)
        reached, work = set[Block](), [*successors_of(begin)]
        while work:
            block = work.pop()
            if block in reached or block is begin:
                continue
            if block is home:
                return True
            reached.add(block)
            work += successors_of(block)
        return False
