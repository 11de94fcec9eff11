# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""SSA values as integers of the layout algebra: computing with them writes `arith` operations."""

from typing import TypeAlias

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from ..dialects.ptx.types import integer_bits
from .emitter import Emitter, int_type

Operand: TypeAlias = "int | SsaInt"


class SsaInt:
    """A run-time integer that is not negative, held by an SSA value of type i32 or i64.

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
        width = integer_bits(self.value.type)
        assert width is not None
        return self.emitter.constant(operand, int_type(width))

    def __add__(self, other: Operand) -> "SsaInt":
        return self._binary(arith.AddiOp, self, other)

    __radd__ = __add__

    def __mul__(self, other: Operand) -> "SsaInt":
        return self._binary(arith.MuliOp, self, other)

    __rmul__ = __mul__

    def __floordiv__(self, other: Operand) -> "SsaInt":
        return self._binary(arith.DivUIOp, self, other)

    def __mod__(self, other: Operand) -> "SsaInt":
        return self._binary(arith.RemUIOp, self, other)

    def __and__(self, other: Operand) -> "SsaInt":
        return self._binary(arith.AndIOp, self, other)

    def __xor__(self, other: Operand) -> "SsaInt":
        return self._binary(arith.XOrIOp, self, other)

    def __rshift__(self, other: Operand) -> "SsaInt":
        return self._binary(arith.ShRUIOp, self, other)

    def __lshift__(self, other: Operand) -> "SsaInt":
        return self._binary(arith.ShLIOp, self, other)
