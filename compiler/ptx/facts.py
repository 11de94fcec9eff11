# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Predicates whose values are known at a place of a kernel, from the branches on all ways to it."""

from collections.abc import Iterator
from functools import cached_property

from xdsl.dialects import arith, cf, scf
from xdsl.dialects.builtin import IntegerAttr, IntegerType
from xdsl.ir import Block, BlockArgument, Operation, Region, SSAValue

Fact = tuple[SSAValue, bool]
"""A predicate, and the value that it has."""


class Facts:
    """The branches of a kernel's blocks, and the facts that follow from them. A fact at a place concerns the value that
    its predicate had when it was last computed.
    """

    def __init__(self, region: Region) -> None:
        self.blocks = list(region.blocks)
        self.predecessors: dict[Block, list[Block]] = {block: [] for block in self.blocks}
        for block in self.blocks:
            for successor in successors_of(block):
                self.predecessors[successor].append(block)

    def outer(self, place: "Operation | Block") -> Block:
        """The block of the kernel that an operation or a block is in."""
        block = place if isinstance(place, Block) else place.parent
        while block is not None and block not in self.predecessors:
            around = block.parent_op()
            block = None if around is None else around.parent
        assert block is not None
        return block

    def at(self, place: "Operation | Block") -> Iterator[Fact]:
        """Predicates whose values are known where an operation is executed."""
        inner = place if isinstance(place, Block) else place.parent
        while inner is not None and inner not in self.predecessors:
            around = inner.parent_op()
            if isinstance(around, scf.IfOp):
                yield fact(around.cond, inner.parent is around.true_region)
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
                    for new in _of_edge(before, block):
                        kept = {f for f in kept if f[0] is not new[0]} | {new}
                    facts = frozenset(kept) if facts is None else facts & kept
                if facts is not None and facts != known[block]:
                    known[block], changed = facts, True
        return {block: facts or frozenset() for block, facts in known.items()}


def fact(predicate: SSAValue, holds: bool) -> Fact:
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


def successors_of(block: Block) -> list[Block]:
    end = block.last_op
    return [] if end is None else list(end.successors)


def _of_edge(before: Block, after: Block) -> list[Fact]:
    """The predicate of the branch between two blocks."""
    end = before.last_op
    if isinstance(end, cf.ConditionalBranchOp) and end.then_block is not end.else_block:
        return [fact(end.cond, end.then_block is after)]
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
        yield target, argument, [fact(op.cond, is_then)] if op.then_block is not op.else_block else []
