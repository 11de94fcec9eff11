# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The dynamic integers of `cute` values while a program runs: exact, and one for each lane where lanes differ."""

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from ....dialects.arith.semantics import remainder, truncate_quotient
from . import anywhere, varies

Number: TypeAlias = Any
"""A Python `int` where all lanes agree, else an array of Python integers (dtype `object`), one for each active lane."""


class ZeroDivisorError(Exception):
    """A division by zero; `where` says in which of the active lanes."""

    def __init__(self, where: Any) -> None:
        super().__init__()
        self.where = where


class LaneInt:
    """An integer that the algebra takes for dynamic: every operation on it yields another, of any size.

    Division rounds toward zero, as C++ and `arith.divsi` do. Raises ZeroDivisorError.
    """

    __slots__ = ("value",)

    def __init__(self, value: Number) -> None:
        self.value = value

    def minimum(self, other: "int | LaneInt") -> "LaneInt":
        """The smaller of two integers."""
        a, b = self.value, number(other)
        return LaneInt(min(a, b) if type(a) is int and type(b) is int else np.minimum(a, b))

    def ceil_div(self, a: "int | LaneInt", b: "int | LaneInt") -> "LaneInt":
        """`a / b` rounded up; one of them is this integer."""
        return LaneInt(-(-number(a) // _divisor(number(b))))

    def shape_div(self, a: "int | LaneInt", b: "int | LaneInt") -> "LaneInt":
        """`a / b` where one divides the other, and 1 where it would be 0; one of them is this integer."""
        quotient = truncate_quotient(number(a), _divisor(number(b)))
        return LaneInt((quotient or 1) if type(quotient) is int else np.where(quotient == 0, 1, quotient))

    def __abs__(self) -> "LaneInt":
        return LaneInt(abs(self.value))

    def __lt__(self, other: "int | LaneInt") -> "LaneCondition":
        return LaneCondition(self.value < number(other))

    def __gt__(self, other: "int | LaneInt") -> "LaneCondition":
        return LaneCondition(self.value > number(other))


class LaneCondition:
    """The result of a comparison of run-time integers."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def choose(self, a: "int | LaneInt", b: "int | LaneInt") -> LaneInt:
        """`a` where the comparison holds, `b` elsewhere."""
        ours, theirs = number(a), number(b)
        if type(self.value) is bool:
            return LaneInt(ours if self.value else theirs)
        chosen = np.empty(self.value.shape, object)
        chosen[:] = theirs
        np.copyto(chosen, ours, where=self.value.astype(bool))
        return LaneInt(chosen)


def lane_int(value: Number) -> LaneInt:
    """The integer that a register holds, exact where those of its lanes are so large that products could wrap."""
    if varies(value) and value.dtype != object:
        upper = value >> 31
        if ((upper != 0) & (upper != -1)).any():
            value = value.astype(object)
    return LaneInt(value)


def number(x: "int | LaneInt") -> Number:
    """The number, or numbers, that an integer of the algebra is."""
    return x.value if isinstance(x, LaneInt) else x


def _divisor(b: Number) -> Number:
    zero = b == 0
    if anywhere(zero):
        raise ZeroDivisorError(zero)
    return b


_OPERATORS: dict[str, Callable[[Number, Number], Number]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "floordiv": lambda a, b: truncate_quotient(a, _divisor(b)),
    "mod": lambda a, b: remainder(a, _divisor(b)),
    "and": lambda a, b: a & b,
    "xor": lambda a, b: a ^ b,
    "lshift": lambda a, b: a << b,
    "rshift": lambda a, b: a >> b,
}


def _define(name: str, function: Callable[[Number, Number], Number]) -> None:
    def forward(self: LaneInt, other: "int | LaneInt") -> LaneInt:
        return LaneInt(function(self.value, number(other)))

    def reflected(self: LaneInt, other: "int | LaneInt") -> LaneInt:
        return LaneInt(function(number(other), self.value))

    setattr(LaneInt, f"__{name}__", forward)
    setattr(LaneInt, f"__r{name}__", reflected)


for _name, _function in _OPERATORS.items():
    _define(_name, _function)
