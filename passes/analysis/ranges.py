# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Analyses of values that look at operands, for programs in which an operand has operands tens of thousands deep; and
the ranges of integers, proven from a kernel's block, grid limits, loop bounds and layouts, with the greatest index of a
coordinate in a layout.
"""

from abc import ABC, abstractmethod
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Generic, TypeVar, cast

from xdsl.dialects import arith, math, scf
from xdsl.dialects.builtin import DenseArrayBase, i64
from xdsl.ir import Block, Operation, SSAValue

from ...base.target import MAX_CLUSTER, MAX_GRID
from ...dialects import gpu
from ...dialects.arith.integer_range import Range, absolute, clip_range, contains, either, limits, reduce_range
from ...dialects.arith.semantics import INTEGER_OPERATIONS, SUMS, constant_of, int_width
from ...dialects.cute.values import with_scalars
from ...dialects.kernel import KernelOp
from ...dialects.ptx import SregOp
from ...dialects.tile.assembly import fill_coordinate, unwrap
from ...layout.algebra.core import Layout
from ...layout.algebra.integers import AnyTuple
from ...layout.algebra.inttuple import leaves
from .range_facts import ends_in, grows_by, restrict_ranges

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


FULL: Range = limits(64)
"""The range of any 64-bit integer."""

RANGE = "range"
"""The attribute of an operation that says the range of its result, where more is known than its operands tell."""


MOST_ATTEMPTS = 4096
"""How often a range is tried for the values that the loops of one kernel carry; loops within loops are tried again with
each."""


def set_range(op: Operation, low: int, high: int) -> None:
    """Notes the range of the result of `op`."""
    op.attributes[RANGE] = DenseArrayBase.from_list(i64, (low, high))


class Ranges(Memoised[Range]):
    """Computes ranges of integers in one kernel, each once. Arithmetic wraps in its type, as `arith` says, unless its
    `overflow` flags promise that it does not.
    """

    def __init__(self, kernel: KernelOp) -> None:
        super().__init__()
        self._registers = register_ranges(kernel.block, kernel.launch_bounds.cluster)
        self._attempts = MOST_ATTEMPTS

    def of(self, value: SSAValue) -> Range:
        """The range of a value; that of its type where nothing is known."""
        return FULL if int_width(value.type) is None else super().of(value)

    def _find(self, value: SSAValue) -> None:
        whole = self._known[value] = _limits(value)  # the assumption for a value that depends on itself
        result = self._compute(value)
        self._known[value] = result if contains(whole, result) else whole

    def fits(self, value: SSAValue, bits: int = 32) -> bool:
        """Whether a value always fits in a signed integer of `bits` bits."""
        return contains(limits(bits), self.of(value))

    def wraps(self, op: Operation) -> bool:
        """Whether a sum, a difference, a product or a shift to the left may be reduced to its type."""
        if not isinstance(op, SUMS) or _promised(op):
            return False
        exact = _exact(op, self.of(op.lhs), self.of(op.rhs))
        return exact is None or not contains(_limits(op.result), exact)

    def _compute(self, value: SSAValue) -> Range:
        if (constant := constant_of(value)) is not None:
            return constant, constant
        owner = value.owner
        if isinstance(owner, Block):
            return self._argument(value, owner)
        if isinstance(known := owner.attributes.get(RANGE), DenseArrayBase):
            low, high = known.get_values()
            return int(low), int(high)
        match owner:
            case gpu.CoordinateOp():
                return self._registers[owner.register]
            case SregOp() if owner.register.data in self._registers:
                return self._registers[owner.register.data]
            case arith.IndexCastOp(input=inner) | arith.ExtSIOp(input=inner) | arith.TruncIOp(input=inner):
                return reduce_range(self.of(inner), _limits(value))
            case arith.ExtUIOp(input=inner):
                return reduce_range(self.of(inner), limits(int_width(inner.type) or 64, unsigned=True))
            case math.AbsIOp(operand=inner):
                return reduce_range(absolute(self.of(inner)), _limits(value))
            case arith.SelectOp(cond=condition, lhs=left, rhs=right):
                return either(self._where(left, condition, True), self._where(right, condition, False))
            case scf.IfOp() if owner.false_region.blocks:
                return self._branches(owner, owner.results.index(value))
            case scf.ForOp():
                return self.of(owner.body.block.args[owner.results.index(value) + 1])
            case arith.SignlessIntegerBinaryOperation(lhs=left, rhs=right):
                exact, whole = _exact(owner, self.of(left), self.of(right)), _limits(value)
                if exact is None:
                    return whole
                return clip_range(exact, whole) if _promised(owner) else reduce_range(exact, whole)
            case _:
                return FULL

    def _argument(self, value: SSAValue, block: Block) -> Range:
        loop = block.parent_op()
        if not isinstance(loop, scf.ForOp) or self.of(loop.step)[0] <= 0:
            return FULL
        if value is not block.args[0]:
            return self._carried(loop, value, block)
        low = self.of(loop.lb)[0]
        return low, max(low, self.of(loop.ub)[1] - 1)

    def _where(self, value: SSAValue, condition: SSAValue, holds: bool) -> Range:
        """The range of a value where a condition holds, or where it does not."""
        known, compared = self.of(value), condition.owner
        if not isinstance(compared, arith.CmpiOp) or value not in compared.operands:
            return known
        left = value is compared.lhs
        other = self.of(compared.rhs if left else compared.lhs)
        return restrict_ranges(known, compared.predicate.value.data, other, left=left, holds=holds)

    def _branches(self, op: scf.IfOp, index: int) -> Range:
        ranges: list[Range] = []
        for region, holds in ((op.true_region, True), (op.false_region, False)):
            end = region.block.last_op
            assert isinstance(end, scf.YieldOp), "the verifier checks this"
            ranges.append(self._where(end.operands[index], op.cond, holds))
        return either(*ranges)

    def _carried(self, loop: scf.ForOp, argument: SSAValue, body: Block) -> Range:
        """The range of a value that a loop carries: one that holds its first value and, if it holds a value, holds
        the following one.
        """
        index = body.args.index(argument) - 1  # pyright: ignore[reportArgumentType]
        end = body.last_op
        assert isinstance(end, scf.YieldOp), "the verifier checks this"
        following = end.operands[index]
        low, high = self.of(loop.iter_args[index])
        whole = _limits(argument)
        step = grows_by(following, argument)
        if step is not None:
            (least, most), (first, last) = self.of(step), (self.of(loop.lb)[0], self.of(loop.ub)[1])
            trips = max(0, -(-(last - first) // self.of(loop.step)[0]))
            grown = low + min(0, trips * least), high + max(0, trips * most)
            if contains(whole, grown):
                return grown
        size = len(self._known)
        for limit in [high, *(e for e in ends_in(loop) if e > high)]:
            for _ in range(2):  # with the low end that it starts with, then with the one that follows
                if self._attempts == 0:
                    break
                self._attempts -= 1
                self._forget(size)
                self._known[argument] = low, limit
                least, most = self.of(following)
                if low <= least and most <= limit:
                    return low, limit
                low = min(low, least)
        self._forget(size)  # without the conclusions from an assumption that does not hold
        return whole


def register_ranges(block: Sequence[int], cluster: Sequence[int] | None) -> dict[str, Range]:
    """The ranges of the special registers in blocks of a size and, where it is known, clusters of a size."""
    least, largest = ((1,) * 3, (MAX_CLUSTER,) * 3) if cluster is None else (cluster, cluster)
    ranks = min(prod(largest), MAX_CLUSTER)
    ranges = {"cluster_ctarank": (0, ranks - 1), "cluster_nctarank": (prod(least), ranks)}
    for axis, size, most, low, high in zip("xyz", block, MAX_GRID, least, largest, strict=True):
        ranges |= {
            f"tid.{axis}": (0, size - 1),
            f"ntid.{axis}": (size, size),
            f"ctaid.{axis}": (0, most - 1),
            f"nctaid.{axis}": (1, most),
            f"cluster_ctaid.{axis}": (0, high - 1),
            f"cluster_nctaid.{axis}": (low, high),
            f"clusterid.{axis}": (0, most // low - 1),
            f"nclusterid.{axis}": (1, most // low),
        }
    return ranges


def _exact(op: arith.SignlessIntegerBinaryOperation, a: Range, b: Range) -> Range | None:
    """The range of a result before it is reduced to its type; None if nothing is known."""
    return INTEGER_OPERATIONS[type(op)].exact_range(a, b, int_width(op.result.type) or 64)


def _promised(op: Operation) -> bool:
    """Whether the program says that a result does not wrap."""
    return isinstance(op, SUMS) and arith.IntegerOverflowFlag.NSW in op.overflow_flags.data


def _limits(value: SSAValue) -> Range:
    """The least and the greatest integer of a value's type."""
    return limits(int_width(value.type) or 64)


@dataclass(frozen=True, slots=True)
class Place:
    """A coordinate in a layout; `values` are its run-time leaves, `scalars` those of the layout, of type `index`."""

    layout: Layout
    coord: AnyTuple
    values: Sequence[SSAValue] = ()
    scalars: Sequence[SSAValue] = ()


def greatest_index(place: Place, ranges: Ranges) -> int:
    """The greatest index that a coordinate within the layout's shape can have."""
    layout = with_scalars(place.layout, place.scalars)
    coord = unwrap(fill_coordinate(place.coord, place.values))
    return _reach(coord, layout.shape, layout.stride, ranges)


def _reach(coord: AnyTuple, shape: AnyTuple, stride: AnyTuple, ranges: Ranges) -> int:
    if isinstance(coord, tuple):
        modes = zip(cast("tuple[Any, ...]", coord), shape, stride, strict=True)
        return sum(_reach(c, s, d, ranges) for c, s, d in modes)
    if isinstance(shape, tuple):  # one number for several modes: it can be anywhere in them
        modes = zip(leaves(cast(Any, shape)), leaves(stride), strict=True)
        return sum((_greatest(s, ranges) - 1) * _greatest(d, ranges) for s, d in modes)
    last = coord if isinstance(coord, int) else min(_greatest(coord, ranges), _greatest(shape, ranges) - 1)
    return last * _greatest(stride, ranges)


def _greatest(x: int | SSAValue, ranges: Ranges) -> int:
    return ranges.of(x)[1] if isinstance(x, SSAValue) else x
