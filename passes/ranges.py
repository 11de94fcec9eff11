# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The ranges of integers: what a kernel's block, grid limits, loop bounds and layouts prove."""

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import DenseArrayBase, i64
from xdsl.dialects.gpu import DimensionEnum
from xdsl.ir import Block, Operation, SSAValue

from ..dialects import gpu
from ..dialects.kernel import KernelOp
from ..dialects.ptx.types import integer_bits
from ..dialects.target import MAX_GRID
from .constants import constant_of
from .emitter import int_width
from .range_facts import Range, ends_in, grows_by, restricted

FULL: Range = (-(2**63), 2**63 - 1)
"""What is known of any 64-bit integer."""
_AXES = (DimensionEnum.X, DimensionEnum.Y, DimensionEnum.Z)


RANGE = "range"
"""The attribute of an operation that says the range of its result, where more is known than its operands tell."""


def set_range(op: Operation, low: int, high: int) -> None:
    """Notes the range of the result of `op`."""
    op.attributes[RANGE] = DenseArrayBase.from_list(i64, (low, high))


class Ranges:
    """Computes ranges of integers in one kernel, each once. A result that may wrap can be any integer of its type."""

    def __init__(self, kernel: KernelOp) -> None:
        self._block = kernel.block
        self._known: dict[SSAValue, Range] = {}

    def of(self, value: SSAValue) -> Range:
        """The range of a value; that of its type where nothing is known."""
        if int_width(value.type) is None:
            return FULL
        if value not in self._known:
            self._known[value] = _limits(value)  # what a value that depends on itself is taken to be
            low, high = self._compute(value)
            least, greatest = _limits(value)
            self._known[value] = (low, high) if least <= low and high <= greatest else (least, greatest)
        return self._known[value]

    def fits(self, value: SSAValue, bits: int = 32) -> bool:
        """Whether a value always fits in a signed integer of so many bits."""
        low, high = self.of(value)
        return -(1 << (bits - 1)) <= low and high < 1 << (bits - 1)

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
            case gpu.ThreadIdOp():
                return 0, self._block[_AXES.index(owner.dimension.data)] - 1
            case gpu.BlockDimOp():
                size = self._block[_AXES.index(owner.dimension.data)]
                return size, size
            case gpu.BlockIdOp():
                return 0, MAX_GRID[_AXES.index(owner.dimension.data)] - 1
            case gpu.GridDimOp():
                return 1, MAX_GRID[_AXES.index(owner.dimension.data)]
            case arith.IndexCastOp(input=inner):
                return self.of(inner)
            case arith.SelectOp(cond=condition, lhs=left, rhs=right):
                return _either(self._where(left, condition, True), self._where(right, condition, False))
            case scf.IfOp() if owner.false_region.blocks:
                return self._branches(owner, owner.results.index(value))
            case scf.ForOp():
                return self.of(owner.body.block.args[owner.results.index(value) + 1])
            case arith.SignlessIntegerBinaryOperation(lhs=left, rhs=right):
                return self._binary(owner, self.of(left), self.of(right))
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
        return restricted(known, compared.predicate.value.data, other, left=left, holds=holds)

    def _branches(self, op: scf.IfOp, index: int) -> Range:
        found: list[Range] = []
        for region, holds in ((op.true_region, True), (op.false_region, False)):
            end = region.block.last_op
            assert isinstance(end, scf.YieldOp), "the verifier checks this"
            found.append(self._where(end.operands[index], op.cond, holds))
        return _either(*found)

    def _carried(self, loop: scf.ForOp, argument: SSAValue, body: Block) -> Range:
        """The range of a value that a loop carries: one that holds what it starts with and, if it holds a value, holds
        the following one.
        """
        index = body.args.index(argument) - 1  # pyright: ignore[reportArgumentType]
        end = body.last_op
        assert isinstance(end, scf.YieldOp), "the verifier checks this"
        following = end.operands[index]
        low, high = self.of(loop.iter_args[index])
        step = grows_by(following, argument)
        if step is not None:
            (least, most), (first, last) = self.of(step), (self.of(loop.lb)[0], self.of(loop.ub)[1])
            trips = max(0, -(-(last - first) // self.of(loop.step)[0]))
            grown = low + min(0, trips * least), high + max(0, trips * most)
            if FULL[0] < grown[0] and grown[1] < FULL[1]:
                return grown
        before = dict(self._known)
        for limit in [high, *(e for e in ends_in(loop) if e > high)]:
            for _ in range(2):  # with the low end that it starts with, then with the one that follows
                self._known = {**before, argument: (low, limit)}
                least, most = self.of(following)
                if low <= least and most <= limit:
                    return low, limit
                low = min(low, least)
        self._known = before  # without what followed from an assumption that does not hold
        return FULL

    def _binary(self, op: arith.SignlessIntegerBinaryOperation, a: Range, b: Range) -> Range:
        match op:
            case arith.AddiOp():
                return a[0] + b[0], a[1] + b[1]
            case arith.SubiOp():
                return a[0] - b[1], a[1] - b[0]
            case arith.MuliOp():
                corners = [x * y for x in a for y in b]
                return min(corners), max(corners)
            case arith.DivUIOp() | arith.DivSIOp() if a[0] >= 0 and b[0] > 0:
                return a[0] // b[1], a[1] // b[0]
            case arith.CeilDivUIOp() | arith.CeilDivSIOp() if a[0] >= 0 and b[0] > 0:
                return -(-a[0] // b[1]), -(-a[1] // b[0])
            case arith.RemUIOp() | arith.RemSIOp() if a[0] >= 0 and b[0] > 0:
                return 0, min(a[1], b[1] - 1)
            case arith.AndIOp() if max(a[0], b[0]) >= 0:
                return 0, min(x[1] for x in (a, b) if x[0] >= 0)
            case arith.ShRUIOp() | arith.ShRSIOp() if a[0] >= 0 and 0 <= b[0] <= b[1] < 64:
                return a[0] >> b[1], a[1] >> b[0]
            case arith.ShLIOp() if a[0] >= 0 and 0 <= b[0] <= b[1] < 64:
                return a[0] << b[0], a[1] << b[1]
            case arith.MinUIOp() | arith.MaxUIOp() if min(a[0], b[0]) < 0:
                return FULL
            case arith.MinSIOp() | arith.MinUIOp():
                return min(a[0], b[0]), min(a[1], b[1])
            case arith.MaxSIOp() | arith.MaxUIOp():
                return max(a[0], b[0]), max(a[1], b[1])
            case _:
                return FULL


def _either(a: Range, b: Range) -> Range:
    return min(a[0], b[0]), max(a[1], b[1])


def _limits(value: SSAValue) -> Range:
    """The least and the greatest integer of a value's type."""
    bits = integer_bits(value.type)
    if bits is None:
        return FULL
    return -(1 << (bits - 1)), (1 << (bits - 1)) - 1
