# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Undefined values that no thread reads become zeros.

LLVM guards a load and the uses of its result by branches on one predicate. Where the ways meet between them, the
register is undefined in the threads that did not load. They never read it, since the predicate is the same; but the
simulator runs a kernel that carries undefined values several times. So a value is replaced if each use of it is behind
a branch that such a thread does not take.
"""

from collections.abc import Iterator
from functools import cached_property
from typing import cast

from xdsl.dialects import arith, cf, scf, ub
from xdsl.dialects.builtin import Float32Type, FloatAttr, IntegerAttr, IntegerType
from xdsl.ir import Block, BlockArgument, Operation, Region, SSAValue
from xdsl.rewriter import Rewriter

from ...dialects.ptx.base import float_bits, integer_bits

Fact = tuple[SSAValue, bool]
"""A predicate, and the value that it has."""
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
    """The branches of a kernel's blocks."""

    def __init__(self, region: Region) -> None:
        self.blocks = list(region.blocks)
        self.predecessors: dict[Block, list[Block]] = {block: [] for block in self.blocks}
        for block in self.blocks:
            for successor in _successors(block):
                self.predecessors[successor].append(block)

    def is_unread(self, value: SSAValue) -> bool:
        """Whether no thread with this value reads it."""
        self.looked = 0
        return self._unread(value, frozenset(self._facts_at(value.owner)), set())

    def _unread(self, value: SSAValue, facts: frozenset[Fact], seen: set[SSAValue]) -> bool:
        if value in seen:
            return True
        seen.add(value)
        for use in value.uses:
            self.looked += 1
            if self.looked > _MOST:
                return False
            user, block = use.operation, self._outer(use.operation)
            holds = {*facts, *self._facts_at(user)}
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
            if (predicate, not holds) in facts and not self._changes(predicate, self._outer(value.owner), user):
                return True
        return False

    def _changes(self, predicate: SSAValue, begin: Block, user: Block) -> bool:
        """Whether a predicate may be computed again on a way from a block to another that does not come back to it."""
        home = self._outer(predicate.owner)
        if home is self.blocks[0]:
            return False
        if home is begin:
            return isinstance(predicate.owner, Block)
        reached, work = set[Block](), [*_successors(begin)]
        while work:
            block = work.pop()
            if block in reached or block is begin:
                continue
            if block is home:
                return True
            reached.add(block)
            work += _successors(block)
        return False

    def _outer(self, place: "Operation | Block") -> Block:
        """The block of the kernel that an operation or a block is in."""
        block = place if isinstance(place, Block) else place.parent
        while block is not None and block not in self.predecessors:
            around = block.parent_op()
            block = None if around is None else around.parent
        assert block is not None
        return block

    def _facts_at(self, place: "Operation | Block") -> Iterator[Fact]:
        """Predicates whose values are known where an operation is executed."""
        inner = place if isinstance(place, Block) else place.parent
        while inner is not None and inner not in self.predecessors:
            around = inner.parent_op()
            if isinstance(around, scf.IfOp):
                yield _fact(around.cond, inner.parent is around.true_region)
            inner = None if around is None else around.parent
        assert inner is not None
        yield from self._known[inner]

    @cached_property
    def _known(self) -> dict[Block, frozenset[Fact]]:
        """The facts at the beginning of each block: those on all ways to it."""
        known: dict[Block, frozenset[Fact] | None] = dict.fromkeys(self.blocks)
        known[self.blocks[0]] = frozenset()
        changed = True
        while changed:
            changed = False
            for block in self.blocks[1:]:
                facts: frozenset[Fact] | None = None
                for before in self.predecessors[block]:
                    start = known[before]
                    if start is None:
                        continue
                    made = {op for op in before.ops}
                    kept = {f for f in start if f[0].owner not in made and f[0].owner is not before}
                    for fact in _facts_of_edge(before, block):
                        kept = {f for f in kept if f[0] is not fact[0]} | {fact}
                    facts = frozenset(kept) if facts is None else facts & kept
                if facts is not None and facts != known[block]:
                    known[block], changed = facts, True
        return {block: facts or frozenset() for block, facts in known.items()}


def _fact(predicate: SSAValue, holds: bool) -> Fact:
    """A fact about the predicate that another one negates."""
    while isinstance(op := predicate.owner, arith.XOrIOp) and _is_true(op.rhs):
        predicate, holds = op.lhs, not holds
    return predicate, holds


def _is_true(value: SSAValue) -> bool:
    op = value.owner
    return (
        isinstance(op, arith.ConstantOp)
        and value.type == IntegerType(1)
        and isinstance(op.value, IntegerAttr)
        and op.value.value.data != 0
    )


def _successors(block: Block) -> list[Block]:
    end = block.last_op
    return [] if end is None else list(end.successors)


def _facts_of_edge(before: Block, after: Block) -> list[Fact]:
    """The predicate of the branch between two blocks."""
    end = before.last_op
    if isinstance(end, cf.ConditionalBranchOp) and end.then_block is not end.else_block:
        return [_fact(end.cond, end.then_block is after)]
    return []


def targets_of(op: Operation, index: int) -> Iterator[tuple[Block, BlockArgument, list[Fact]]]:
    """The argument that an operand of a branch becomes, with the facts on the way."""
    if isinstance(op, cf.BranchOp):
        yield op.successor, op.successor.args[index], []
    elif isinstance(op, cf.ConditionalBranchOp) and index > 0:
        count = len(op.then_arguments)
        is_then = index - 1 < count
        target = op.then_block if is_then else op.else_block
        argument = target.args[index - 1 if is_then else index - 1 - count]
        yield target, argument, [_fact(op.cond, is_then)] if op.then_block is not op.else_block else []
