# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Analyses of values that look at operands, for programs in which an operand has operands tens of thousands deep."""

from abc import ABC, abstractmethod
from collections.abc import Container, Iterator, Sequence
from typing import Generic, TypeVar

from xdsl.dialects import scf
from xdsl.ir import Block, SSAValue

Known = TypeVar("Known")

MOST_NESTED = 24
"""How deep an analysis calls itself for operands. Deeper ones are found one after the other, operands first."""


class Memoised(ABC, Generic[Known]):
    """Computes a result for each value, once, from the results for its operands."""

    def __init__(self) -> None:
        self._known: dict[SSAValue, Known] = {}
        self._nested = 0

    def of(self, value: SSAValue) -> Known:
        """The result for a value."""
        if value not in self._known:
            due = (value,) if self._nested < MOST_NESTED else walk_operands_first(value, self._known)
            self._nested += 1
            for part in due:
                if part not in self._known:
                    self._find(part)
            self._nested -= 1
        return self._known[value]

    def _find(self, value: SSAValue) -> None:
        """Records the result for a value."""
        self._known[value] = self._compute(value)

    @abstractmethod
    def _compute(self, value: SSAValue) -> Known:
        """Computes the result for a value, by `of` of its operands."""

    def _forget(self, size: int) -> None:
        """Drops all but the first `size` results: dictionaries keep the order of insertion."""
        while len(self._known) > size:
            self._known.popitem()


def walk_operands_first(value: SSAValue, known: Container[SSAValue]) -> Iterator[SSAValue]:
    """A value after all that it is computed from and that is not known when its turn comes; some of it twice.

    Values that a loop carries from one iteration to the next are left out.
    """
    waiting, opened = [value], set[SSAValue]()
    while waiting:
        last = waiting[-1]
        if last in known or last in opened:
            waiting.pop()
            if last not in known:
                yield last
        else:
            opened.add(last)
            waiting.extend(part for part in _parts(last) if part not in opened)


def _parts(value: SSAValue) -> Sequence[SSAValue]:
    """The values that a value is computed from, except those that loops carry."""
    owner = value.owner
    if isinstance(owner, Block):
        parent = owner.parent_op()
        return parent.operands if isinstance(parent, scf.ForOp | scf.WhileOp) else ()
    if isinstance(owner, scf.IfOp):
        index = owner.results.index(value)
        ends = [region.block.last_op for region in owner.regions if region.blocks]
        return [owner.cond, *(end.operands[index] for end in ends if end is not None)]
    return owner.operands
