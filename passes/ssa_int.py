# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""SSA values as integers of the layout algebra: computing with them writes `arith` operations."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, TypeAlias

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from ..layout.unknown import Unknown
from .emitter import Emitter, int_width

Operand: TypeAlias = "int | SsaInt"


class SsaInt:
    """A run-time integer that is not negative, held by an SSA value of type i32, i64 or index.

    Division and remainder are those of unsigned integers: coordinates and offsets are never negative. `known` is what a
    type can say of it; it follows the arithmetic, so that types need not be inferred a second time.
    """

    __slots__ = ("emitter", "known", "value")

    def __init__(self, emitter: Emitter, value: SSAValue, known: Unknown | None = None) -> None:
        self.emitter = emitter
        self.value = value
        self.known = Unknown(int_width(value.type) or 64) if known is None else known

    def _binary(self, op: type[arith.SignlessIntegerBinaryOperation], left: Operand, right: Operand) -> "SsaInt":
        result = self.emitter.value(op(self._ssa(left), self._ssa(right)))
        return SsaInt(self.emitter, result, _KNOWN[op](known_of(left), known_of(right)))

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

    def __rfloordiv__(self, other: Operand) -> "SsaInt":
        return self._binary(arith.DivUIOp, other, self)

    def __mod__(self, other: Operand) -> "SsaInt":
        return self._binary(arith.RemUIOp, self, other)

    def __rmod__(self, other: Operand) -> "SsaInt":
        return self._binary(arith.RemUIOp, other, self)

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


def known_of(x: Operand) -> int | Unknown:
    """What a type says of an integer of the algebra: its value, or what is known of it."""
    return x.known if isinstance(x, SsaInt) else x


_KNOWN: Mapping[type[arith.SignlessIntegerBinaryOperation], Callable[[Any, Any], Any]] = MappingProxyType({
    arith.AddiOp: lambda a, b: a + b,
    arith.SubiOp: lambda a, b: a - b,
    arith.MuliOp: lambda a, b: a * b,
    arith.DivUIOp: lambda a, b: a // b,
    arith.RemUIOp: lambda a, b: a % b,
    arith.MinSIOp: lambda a, b: a + b,
    arith.MaxSIOp: lambda a, b: a + b,
    arith.AndIOp: lambda a, b: a & b,
    arith.XOrIOp: lambda a, b: a ^ b,
    arith.ShRUIOp: lambda a, b: a >> b,
    arith.ShLIOp: lambda a, b: a << b,
})  # fmt: skip
"""What is known of a result; of a minimum and a maximum as much as of a sum."""
