# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""SSA values as the signed i32 and i64 of the `cute` dialect: computing with them writes `arith` operations."""

from typing import Any, ClassVar, Self, TypeAlias

from xdsl.dialects import arith, math, scf
from xdsl.dialects.builtin import i32, i64
from xdsl.ir import Block, Region, SSAValue

from ...writing.emitter import Binary, Emitter, SsaOperators

Operand: TypeAlias = "int | SignedInt"

_NSW = arith.IntegerOverflowAttr([arith.IntegerOverflowFlag.NSW])
_EXACT = (arith.AddiOp, arith.SubiOp, arith.MuliOp)  # operations that must not overflow


class SignedInt(SsaOperators):
    """A run-time integer held by an SSA value of type i32 or i64.

    Of operands of different widths the narrower is extended; a constant takes the width of the other operand, or 64
    bits where it needs them. Sums and products must not overflow (`nsw`). Division rounds toward zero, as in C++.
    """

    __slots__ = ("emitter", "value")
    DIVISION: ClassVar[Binary] = arith.DivSIOp
    REMAINDER: ClassVar[Binary] = arith.RemSIOp

    def __init__(self, emitter: Emitter, value: SSAValue) -> None:
        self.emitter = emitter
        self.value = value

    @property
    def width(self) -> int:
        """32 or 64."""
        return 64 if self.value.type == i64 else 32

    def to(self, width: int) -> SSAValue:
        """The value as an integer of `width` bits: extended with its sign, or truncated."""
        if width == self.width:
            return self.value
        cast = arith.ExtSIOp if width > self.width else arith.TruncIOp
        return self.emitter.value(cast(self.value, i64 if width == 64 else i32))

    def pair(self, left: Operand, right: Operand) -> tuple[SSAValue, SSAValue]:
        """Both as SSA values of one width."""
        width = max(_width(left), _width(right))
        return self._ssa(left, width), self._ssa(right, width)

    def _ssa(self, operand: Operand, width: int) -> SSAValue:
        if isinstance(operand, SignedInt):
            return operand.to(width)
        return self.emitter.constant(operand, i64 if width == 64 else i32)

    def binary(self, op: Binary, left: Any, right: Any) -> Self:
        operands = self.pair(left, right)
        exact = next((kind for kind in _EXACT if op is kind), None)
        made = op(*operands) if exact is None else exact(*operands, overflow=_NSW)
        return type(self)(self.emitter, self.emitter.value(made))

    def __abs__(self) -> "SignedInt":
        return SignedInt(self.emitter, self.emitter.value(math.AbsIOp(self.value)))

    def ceil_div(self, left: Operand, right: Operand) -> Self:
        """`left / right` rounded up; one of them is this integer."""
        return self.binary(arith.CeilDivSIOp, left, right)

    def compare(self, predicate: str, left: Operand, right: Operand) -> SSAValue:
        """The i1 of a comparison, by MLIR's name of it: `slt`, `eq`; one of the integers is this one."""
        return self.emitter.value(arith.CmpiOp(*self.pair(left, right), predicate))

    def shape_div(self, left: Operand, right: Operand) -> "SignedInt":
        """`left / right` where one divides the other, and at least 1; one of them is this integer."""
        quotient = self.binary(arith.DivSIOp, left, right)
        return Condition(quotient, quotient.compare("ne", quotient, 0)).choose(quotient, 1)

    def __lt__(self, other: Operand) -> "Condition":
        return Condition(self, self.compare("slt", self, other))

    def __gt__(self, other: Operand) -> "Condition":
        return Condition(self, self.compare("slt", other, self))


class Condition:
    """The result of a comparison of run-time integers."""

    __slots__ = ("integer", "value")

    def __init__(self, integer: SignedInt, value: SSAValue) -> None:
        self.integer = integer
        self.value = value

    def choose(self, a: Operand, b: Operand) -> SignedInt:
        """`a` where the comparison holds, `b` elsewhere."""
        emitter = self.integer.emitter
        results = self.integer.pair(a, b)
        regions: list[Region] = []
        for result in results:
            end = scf.YieldOp(result)
            end.location = emitter.op.location
            regions.append(Region(Block([end])))
        branch = scf.IfOp(self.value, [results[0].type], regions[0], regions[1])
        return SignedInt(emitter, emitter.value(branch))


def _width(operand: Operand) -> int:
    if isinstance(operand, SignedInt):
        return operand.width
    return 32 if -(1 << 31) <= operand < 1 << 31 else 64
