# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The ranges of `index` values: what a kernel's block, grid limits and loop bounds prove."""

from xdsl.dialects import arith, scf
from xdsl.dialects.gpu import DimensionEnum
from xdsl.ir import Block, SSAValue

from ..dialects import gpu
from ..dialects.ptx import EntryOp
from ..dialects.ptx.types import integer_bits
from ..dialects.target import MAX_GRID
from .constants import constant_of

Range = tuple[int, int]
"""The least and the greatest value, both included."""

FULL: Range = (-(2**63), 2**63 - 1)
"""What is known of any 64-bit integer."""
_AXES = (DimensionEnum.X, DimensionEnum.Y, DimensionEnum.Z)


class Ranges:
    """Computes ranges of `index` values in one kernel, each once."""

    def __init__(self, entry: EntryOp) -> None:
        self._block = entry.block
        self._known: dict[SSAValue, Range] = {}

    def of(self, value: SSAValue) -> Range:
        """The range of a value; FULL where nothing is known."""
        if value not in self._known:
            self._known[value] = FULL  # what a value that depends on itself is taken to be
            low, high = self._compute(value)
            self._known[value] = (low, high) if FULL[0] <= low and high <= FULL[1] else FULL
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
            case arith.IndexCastOp(input=inner) if (bits := integer_bits(inner.type)) is not None and bits < 64:
                return -(1 << (bits - 1)), (1 << (bits - 1)) - 1
            case arith.SelectOp(lhs=left, rhs=right):
                a, b = self.of(left), self.of(right)
                return min(a[0], b[0]), max(a[1], b[1])
            case arith.SignlessIntegerBinaryOperation(lhs=left, rhs=right):
                return self._binary(owner, self.of(left), self.of(right))
            case _:
                return FULL

    def _argument(self, value: SSAValue, block: Block) -> Range:
        loop = block.parent_op()
        if isinstance(loop, scf.ForOp) and value is block.args[0] and self.of(loop.step)[0] > 0:
            low = self.of(loop.lb)[0]
            return low, max(low, self.of(loop.ub)[1] - 1)
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
            case arith.RemUIOp() | arith.RemSIOp() if a[0] >= 0 and b[0] > 0:
                return 0, min(a[1], b[1] - 1)
            case arith.AndIOp() if max(a[0], b[0]) >= 0:
                return 0, min(x[1] for x in (a, b) if x[0] >= 0)
            case arith.ShRUIOp() | arith.ShRSIOp() if a[0] >= 0 and 0 <= b[0] <= b[1] < 64:
                return a[0] >> b[1], a[1] >> b[0]
            case arith.ShLIOp() if a[0] >= 0 and 0 <= b[0] <= b[1] < 64:
                return a[0] << b[0], a[1] << b[1]
            case arith.MinSIOp():
                return min(a[0], b[0]), min(a[1], b[1])
            case arith.MaxSIOp():
                return max(a[0], b[0]), max(a[1], b[1])
            case _:
                return FULL
