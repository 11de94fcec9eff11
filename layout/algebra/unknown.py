# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""An integer known only when the program runs, as types see it."""

from dataclasses import dataclass
from math import gcd
from typing import Any, final

_LARGEST_DIV = 1 << 62


def _known(div: int) -> int:
    """A divisor worth remembering: of one that leaves 64 bits only the power of two is kept."""
    return div if div <= _LARGEST_DIV else min(div & -div, _LARGEST_DIV)


@final
@dataclass(frozen=True, slots=True)
class Unknown:
    """A dynamic integer of `width` bits that `div` is known to divide; prints as `?`, `?{i64}` or `?{i64
    div=8}`.

    Arithmetic keeps what stays true of every value: the greatest common divisor for sums, the product for
    products, the quotient where a division is exact. Equality compares the knowledge, not the (unknown)
    value.
    """

    width: int = 32
    div: int = 1

    def __str__(self) -> str:
        notes = [f"i{self.width}"] if self.width != 32 else []
        if self.div != 1:
            notes.append(f"div={self.div}")
        return "?{" + " ".join(notes) + "}" if notes else "?"

    def __bool__(self) -> bool:
        raise TypeError("the value of a dynamic integer is not known")

    def _with(self, other: "int | Unknown", div: int) -> "Unknown":
        width = max(self.width, other.width) if isinstance(other, Unknown) else self.width
        return Unknown(width, _known(div))

    def _gcd(self, other: "int | Unknown") -> "Unknown":
        return self._with(other, gcd(self.div, divisor(other)))

    def __add__(self, other: "int | Unknown") -> "Unknown":
        return self._gcd(other)

    __radd__ = __sub__ = __rsub__ = minimum = maximum = __add__

    def __mul__(self, other: "int | Unknown") -> "Unknown":
        return self._with(other, self.div * abs(divisor(other)) or 1)

    __rmul__ = __mul__

    def __neg__(self) -> "Unknown":
        return self

    def __floordiv__(self, other: "int | Unknown") -> "Unknown":
        exact = isinstance(other, int) and other != 0 and self.div % other == 0
        return self._with(other, self.div // abs(other) if exact and isinstance(other, int) else 1)

    def __rfloordiv__(self, other: int) -> "Unknown":
        return self._with(other, 1)

    def __mod__(self, other: "int | Unknown") -> "Unknown":
        return self._gcd(other)

    def __rmod__(self, other: int) -> "Unknown":
        return self._gcd(other)

    def __and__(self, other: "int | Unknown") -> "Unknown":
        zeros = divisor(other)
        return self._with(other, max(self.div & -self.div, (zeros & -zeros) or 1))

    __rand__ = __and__

    def __xor__(self, other: "int | Unknown") -> "Unknown":
        zeros = divisor(other) | self.div
        return self._with(other, zeros & -zeros)

    __rxor__ = __or__ = __ror__ = __xor__

    def __lshift__(self, other: int) -> "Unknown":
        return self * (1 << other)

    def __rshift__(self, other: int) -> "Unknown":
        return self // (1 << other)

    def _compare(self, other: "int | Unknown") -> "Unknown":
        return Unknown(1)

    __lt__ = __le__ = __gt__ = __ge__ = _compare


def divisor(x: Any) -> int:
    """The largest number known to divide an integer: of a static one, itself."""
    return x.div if isinstance(x, Unknown) else x
