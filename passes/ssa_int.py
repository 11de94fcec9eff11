# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""SSA values as integers of the layout algebra: computing with them writes `arith` operations."""

from typing import TypeAlias

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from .emitter import Emitter

Operand: TypeAlias = "int | SsaInt"


class SsaInt:
    """A run-time integer that is not negative, held by an SSA value of type i32, i64 or index.

    Division and remainder are those of unsigned integers: coordinates and offsets are never negative.
    """

    __slots__ = ("emitter", "value")

    def __init__(self, emitter: Emitter, value: SSAValue) -> None:
        self.emitter = emitter
        self.value = value

    def _binary(self, op: type[arith.SignlessIntegerBinaryOperation], left: Operand, right: Operand) -> "SsaInt":
        return SsaInt(self.emitter, self.emitter.value(op(self._ssa(left), self._ssa(right))))

    def _ssa(self, operand: Operand) -> SSAValue:
        if isinstance(operand, SsaInt):
            return operand.value
        return self.emitter.constant_like(operand, self.value)

    def __add__(self, other: Operand) -> "SsaInt":
        return self._binary(arith.AddiOp, self, other)

    __radd__ = __add__

    def __sub__(self, other: Operand) -> "SsaInt":
        return self._binary(arith.SubiOp, self, other)

    def __rsub__(self, other: Operand) -> "SsaInt":
        return self._binary(arith.SubiOp, other, self)

    def __mul__(self, other: Operand) -> "SsaInt":
        return self._binary(arith.MuliOp, self, other)

    __rmul__ = __mul__

    def __floordiv__(self, other: Operand) -> "SsaInt":
        return self._binary(arith.DivUIOp, self, other)

    def __mod__(self, other: Operand) -> "SsaInt":
        return self._binary(arith.RemUIOp, self, other)

    def minimum(self, other: Operand) -> "SsaInt":
        """The smaller of two integers, which may be negative."""
        return self._binary(arith.MinSIOp, self, other)

    def maximum(self, other: Operand) -> "SsaInt":
        """The larger of two integers, which may be negative."""
        return self._binary(arith.MaxSIOp, self, other)

    def __and__(self, other: Operand) -> "SsaInt":
        return self._binary(arith.AndIOp, self, other)

    def __xor__(self, other: Operand) -> "SsaInt":
        return self._binary(arith.XOrIOp, self, other)

    def __rshift__(self, other: Operand) -> "SsaInt":
        return self._binary(arith.ShRUIOp, self, other)

    def __lshift__(self, other: Operand) -> "SsaInt":
        return self._binary(arith.ShLIOp, self, other)
