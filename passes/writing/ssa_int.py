# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""SSA values as integers of the layout algebra: computing with them writes `arith` operations."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Self, TypeAlias

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from ...dialects.arith.semantics import INTEGER_OPERATIONS, int_width
from ...layout.algebra.unknown import Unknown
from .emitter import Emitter

Binary: TypeAlias = type[arith.SignlessIntegerBinaryOperation]
Operand: TypeAlias = "int | SsaInt"


def _operators(op: Binary) -> tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any]]:
    """An operator, with the integer on the left and on the right."""
    return lambda self, other: self.binary(op, self, other), lambda self, other: self.binary(op, other, self)


class SsaOperators(ABC):
    """The operators of an integer of the layout algebra. The other operand may be a number."""

    __slots__ = ()
    DIVISION: ClassVar[Binary]
    REMAINDER: ClassVar[Binary]

    @abstractmethod
    def binary(self, op: Binary, left: Any, right: Any) -> Self:
        """The result of an operation on two integers of this kind or numbers, of which this is one."""

    __add__, __radd__ = _operators(arith.AddiOp)
    __sub__, __rsub__ = _operators(arith.SubiOp)
    __mul__ = __rmul__ = _operators(arith.MuliOp)[0]
    __and__ = __rand__ = _operators(arith.AndIOp)[0]
    __xor__ = __rxor__ = _operators(arith.XOrIOp)[0]
    __rshift__, __lshift__ = _operators(arith.ShRUIOp)[0], _operators(arith.ShLIOp)[0]

    def __floordiv__(self, other: int | Self) -> Self:
        return self.binary(self.DIVISION, self, other)

    def __rfloordiv__(self, other: int) -> Self:
        return self.binary(self.DIVISION, other, self)

    def __mod__(self, other: int | Self) -> Self:
        return self.binary(self.REMAINDER, self, other)

    def __rmod__(self, other: int) -> Self:
        return self.binary(self.REMAINDER, other, self)

    def minimum(self, other: int | Self) -> Self:
        """The smaller of two integers, which may be negative."""
        return self.binary(arith.MinSIOp, self, other)


class SsaInt(SsaOperators):
    """A run-time integer that is not negative, held by an SSA value of type i32, i64 or index.

    Division and remainder are those of unsigned integers: coordinates and offsets are never negative. `known` holds the
    facts that a type can express; it follows the arithmetic, so that types need not be inferred a second time.
    """

    __slots__ = ("emitter", "known", "value")
    DIVISION: ClassVar[Binary] = arith.DivUIOp
    REMAINDER: ClassVar[Binary] = arith.RemUIOp

    def __init__(self, emitter: Emitter, value: SSAValue, known: Unknown | None = None) -> None:
        self.emitter = emitter
        self.value = value
        self.known = Unknown(int_width(value.type) or 64) if known is None else known

    def binary(self, op: Binary, left: Any, right: Any) -> Self:
        result = self.emitter.value(op(self._ssa(left), self._ssa(right)))
        return type(self)(self.emitter, result, INTEGER_OPERATIONS[op].value(facts_of(left), facts_of(right)))

    def _ssa(self, operand: Operand) -> SSAValue:
        if isinstance(operand, SsaInt):
            return operand.value
        return self.emitter.constant_like(operand, self.value)

    def maximum(self, other: int | Self) -> Self:
        """The larger of two integers, which may be negative."""
        return self.binary(arith.MaxSIOp, self, other)


def facts_of(x: Operand) -> int | Unknown:
    """An integer of the algebra as a type has it: its value, or the facts about it."""
    return x.known if isinstance(x, SsaInt) else x
