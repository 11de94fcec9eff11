# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Integers that a launch decides: arithmetic on the integers among a kernel's parameters."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeAlias, final

_OPERATORS: Mapping[str, tuple[int, Callable[[int, int], int]]] = MappingProxyType({
    "+": (1, int.__add__), "-": (1, int.__sub__),
    "*": (2, int.__mul__), "//": (2, int.__floordiv__), "%": (2, int.__mod__),
})  # fmt: skip
"""How tightly an operator binds, and its function."""


@final
@dataclass(frozen=True, slots=True)
class LaunchInt:
    """The integer parameter `left`, or the value of `left operator right`: an integer of the layout algebra.

    Its text is an expression of Python: `(A_0 - 1) * 8`.
    """

    left: "str | LaunchValue"
    operator: str = ""
    right: "LaunchValue" = 0

    def __add__(self, other: "LaunchValue") -> "LaunchInt":
        return LaunchInt(self, "+", other)

    def __radd__(self, other: "LaunchValue") -> "LaunchInt":
        return LaunchInt(other, "+", self)

    def __sub__(self, other: "LaunchValue") -> "LaunchInt":
        return LaunchInt(self, "-", other)

    def __rsub__(self, other: "LaunchValue") -> "LaunchInt":
        return LaunchInt(other, "-", self)

    def __mul__(self, other: "LaunchValue") -> "LaunchInt":
        return LaunchInt(self, "*", other)

    def __rmul__(self, other: "LaunchValue") -> "LaunchInt":
        return LaunchInt(other, "*", self)

    def __floordiv__(self, other: "LaunchValue") -> "LaunchInt":
        return LaunchInt(self, "//", other)

    def __rfloordiv__(self, other: "LaunchValue") -> "LaunchInt":
        return LaunchInt(other, "//", self)

    def __mod__(self, other: "LaunchValue") -> "LaunchInt":
        return LaunchInt(self, "%", other)

    def __rmod__(self, other: "LaunchValue") -> "LaunchInt":
        return LaunchInt(other, "%", self)

    def __str__(self) -> str:
        return self._text(0)

    def _text(self, outer: int) -> str:
        if not self.operator:
            return str(self.left)
        binds, _ = _OPERATORS[self.operator]
        left, right = (
            operand._text(level) if isinstance(operand, LaunchInt) else str(operand)
            for operand, level in ((self.left, binds), (self.right, binds + 1))
        )
        text = f"{left} {self.operator} {right}"
        return f"({text})" if binds < outer else text

    @property
    def names(self) -> frozenset[str]:
        """The parameters on which the value depends."""
        if isinstance(self.left, str):
            return frozenset((self.left,))
        return names_of(self.left) | names_of(self.right)

    def value(self, given: Mapping[str, int]) -> int:
        """The value for those of the parameters. ZeroDivisionError for a division by 0."""
        if isinstance(self.left, str):
            return given[self.left]
        _, function = _OPERATORS[self.operator]
        return function(value_for(self.left, given), value_for(self.right, given))


LaunchValue: TypeAlias = int | LaunchInt
"""An integer that is known, or that a launch decides."""


def names_of(value: LaunchValue) -> frozenset[str]:
    """The parameters on which an integer depends."""
    return value.names if isinstance(value, LaunchInt) else frozenset()


def value_for(value: LaunchValue, given: Mapping[str, int]) -> int:
    """An integer for the values of the parameters. ZeroDivisionError for a division by 0."""
    return value.value(given) if isinstance(value, LaunchInt) else value


def renamed(value: LaunchValue, names: Mapping[str, str]) -> LaunchValue:
    """The same integer of parameters with other names."""
    if not isinstance(value, LaunchInt):
        return value
    if isinstance(value.left, str):
        return LaunchInt(names[value.left])
    return LaunchInt(renamed(value.left, names), value.operator, renamed(value.right, names))
