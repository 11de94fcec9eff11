# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Python's operators on integers that SSA values hold: computing with them writes `arith` operations."""

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self, TypeAlias

from xdsl.dialects import arith

Binary: TypeAlias = type[arith.SignlessIntegerBinaryOperation]


class SsaOperators(ABC):
    """The operators of an integer of the layout algebra. The other operand may be a number."""

    __slots__ = ()
    DIVISION: ClassVar[Binary]
    REMAINDER: ClassVar[Binary]

    @abstractmethod
    def binary(self, op: Binary, left: Any, right: Any) -> Self:
        """The result of an operation on two integers of this kind or numbers, of which this is one."""

    def __add__(self, other: int | Self) -> Self:
        return self.binary(arith.AddiOp, self, other)

    def __radd__(self, other: int) -> Self:
        return self.binary(arith.AddiOp, other, self)

    def __sub__(self, other: int | Self) -> Self:
        return self.binary(arith.SubiOp, self, other)

    def __rsub__(self, other: int) -> Self:
        return self.binary(arith.SubiOp, other, self)

    def __mul__(self, other: int | Self) -> Self:
        return self.binary(arith.MuliOp, self, other)

    __rmul__ = __mul__

    def __floordiv__(self, other: int | Self) -> Self:
        return self.binary(self.DIVISION, self, other)

    def __rfloordiv__(self, other: int) -> Self:
        return self.binary(self.DIVISION, other, self)

    def __mod__(self, other: int | Self) -> Self:
        return self.binary(self.REMAINDER, self, other)

    def __rmod__(self, other: int) -> Self:
        return self.binary(self.REMAINDER, other, self)

    def __and__(self, other: int | Self) -> Self:
        return self.binary(arith.AndIOp, self, other)

    __rand__ = __and__

    def __xor__(self, other: int | Self) -> Self:
        return self.binary(arith.XOrIOp, self, other)

    __rxor__ = __xor__

    def __rshift__(self, other: int | Self) -> Self:
        return self.binary(arith.ShRUIOp, self, other)

    def __lshift__(self, other: int | Self) -> Self:
        return self.binary(arith.ShLIOp, self, other)

    def minimum(self, other: int | Self) -> Self:
        """The smaller of two integers, which may be negative."""
        return self.binary(arith.MinSIOp, self, other)
