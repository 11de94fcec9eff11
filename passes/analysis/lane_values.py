# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Integers of a warp whose differences between lanes are known, while the integers themselves are not."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import wraps
from math import gcd
from typing import TypeGuard

from ...base.target import WARP

EXACT = 1 << 10
"""Stands for the bits of an integer of any size."""


def _modular(
    function: "Callable[[LaneValue, LaneValue], LaneValue | None]",
) -> "Callable[[LaneValue, LaneValue], LaneValue | None]":
    """A function whose low bits are known as far as those of both operands."""

    @wraps(function)
    def of(a: "LaneValue", b: "LaneValue") -> "LaneValue | None":
        result = function(a, b)
        return None if result is None else result.modulo(min(a.bits, b.bits))

    return of


@dataclass(frozen=True, slots=True)
class LaneValue:
    """`(known[lane] ^ t) + s`, modulo `2**bits` unless that is EXACT: `t` is any integer with bits of `mask` only, `s`
    any multiple of `step` (0 if that is 0). Both are unknown, and the same in all lanes of the warp.

    Operators and functions are those of integers of any size, which do not wrap. One returns None if its result is
    not of this form.
    """

    known: tuple[int, ...]
    mask: int = 0
    step: int = 0
    bits: int = EXACT

    @property
    def is_exact(self) -> bool:
        """Whether nothing is unknown."""
        return self.mask == 0 and self.step == 0 and self.bits == EXACT

    @property
    def is_uniform(self) -> bool:
        """Whether all lanes have the same value, known or not."""
        return len(set(self.known)) == 1 and self.bits == EXACT

    def modulo(self, bits: int) -> "LaneValue":
        """The same, with at most `bits` low bits known."""
        return self if self.bits <= bits else replace(self, bits=bits)

    def wrapped(self, bits: int) -> "LaneValue":
        """The integer of `bits` bits that is equal modulo `2**bits`."""
        if not self.is_uniform:
            return self.modulo(bits)
        shifted = as_shift(self)
        return uniform() if shifted is None else uniform(gcd(shifted.step, shifted.known[0], 1 << bits))

    @property
    def _number(self) -> int | None:
        """The integer that all lanes are known to have."""
        return self.known[0] if self.is_uniform and self.is_exact else None

    def unspecified(self, other: "LaneValue") -> "LaneValue | None":
        """The result of any function: that of uniform operands is uniform."""
        return uniform() if self.is_uniform and other.is_uniform else None

    __or__ = minimum = maximum = unspecified

    @_modular
    def __add__(self, other: "LaneValue") -> "LaneValue | None":
        if not _reach(self) & _reach(other):
            known = tuple(x | y for x, y in zip(self.known, other.known, strict=True))
            return _normal(LaneValue(known, self.mask | other.mask, gcd(self.step, other.step)))
        left, right = as_shift(self), as_shift(other)
        if left is not None and right is not None:
            known = tuple(x + y for x, y in zip(left.known, right.known, strict=True))
            return LaneValue(known, 0, gcd(left.step, right.step))
        for unknown, rest in ((self, right), (other, left)):  # an unknown that is xored stays; an added one is uniform
            if rest is not None and rest.is_uniform:
                return LaneValue(unknown.known, unknown.mask, gcd(unknown.step, rest.step, rest.known[0]))
        return None

    def __sub__(self, other: "LaneValue") -> "LaneValue | None":
        shifted = as_shift(other)
        if shifted is None:
            return None
        return self + LaneValue(tuple(-x for x in shifted.known), 0, shifted.step, other.bits)

    @_modular
    def __mul__(self, other: "LaneValue") -> "LaneValue | None":
        for value, factor in ((self, other), (other, self)):
            if (number := factor._number) is not None:
                return _scaled(value, number)
        if self.is_exact and other.is_exact:
            return exact([x * y for x, y in zip(self.known, other.known, strict=True)])
        return uniform(_divisor(self) * _divisor(other)) if self.is_uniform and other.is_uniform else None

    @_modular
    def __xor__(self, other: "LaneValue") -> "LaneValue | None":
        left, right = _as_bits(self), _as_bits(other)
        if left is None or right is None:
            return self.unspecified(other)
        known = tuple(x ^ y for x, y in zip(left.known, right.known, strict=True))
        return _normal(LaneValue(known, left.mask | right.mask))

    def __and__(self, other: "LaneValue") -> "LaneValue | None":
        value, mask = (self, other._number) if self._number is None else (other, self._number)
        return self.unspecified(other) if mask is None else mask_lanes(value, mask)

    def __lshift__(self, other: "LaneValue") -> "LaneValue | None":
        by = other._number
        return self * constant(1 << by) if by is not None and 0 <= by < 64 else self.unspecified(other)

    def __rshift__(self, other: "LaneValue") -> "LaneValue | None":
        by = other._number
        return shifted_right(self, by) if by is not None and 0 <= by < 64 else self.unspecified(other)

    def __floordiv__(self, other: "LaneValue") -> "LaneValue | None":
        by = other._number
        return shifted_right(self, by.bit_length() - 1) if _is_power(by) else self.unspecified(other)

    def __mod__(self, other: "LaneValue") -> "LaneValue | None":
        by = other._number
        return mask_lanes(self, by - 1) if _is_power(by) else self.unspecified(other)


def _is_power(number: int | None) -> TypeGuard[int]:
    return number is not None and number > 0 and number & (number - 1) == 0


def exact(values: Sequence[int]) -> LaneValue:
    """A value known in each lane."""
    return LaneValue(tuple(values))


def constant(value: int) -> LaneValue:
    """A value known to be the same in all lanes."""
    return LaneValue((value,) * WARP)


def uniform(multiple: int = 1) -> LaneValue:
    """Any multiple of a number, the same in all lanes."""
    return LaneValue((0,) * WARP, 0, multiple)


def bits_of(values: Sequence[int]) -> LaneValue:
    """One of these values, unknown which, the same in all lanes."""
    mask = 0
    for value in values:
        mask |= value ^ values[0]
    return _normal(LaneValue((values[0],) * WARP, mask))


def elementwise(function: Callable[[int, int], int | None], a: LaneValue, b: LaneValue) -> LaneValue | None:
    """A function of two integers; where they are not known, only that of uniform values is uniform."""
    if a.is_exact and b.is_exact:
        results = [function(x, y) for x, y in zip(a.known, b.known, strict=True)]
        return None if None in results else exact([r for r in results if r is not None])
    return uniform() if a.is_uniform and b.is_uniform else None


def mask_lanes(a: LaneValue, mask: int) -> LaneValue | None:
    """`a & mask`."""
    value = a
    if a.step and not 0 <= mask < a.step & -a.step:
        bits = _as_bits(a)
        if bits is None:
            if not a.is_uniform:
                return None
            return LaneValue((0,) * WARP, mask) if mask >= 0 else uniform(mask & -mask)
        value = bits
    result = _normal(LaneValue(tuple(x & mask for x in value.known), value.mask & mask))
    return result if 0 <= mask < 1 << a.bits else result.modulo(a.bits)


def shifted_right(a: LaneValue, bits: int) -> LaneValue | None:
    """`a >> bits`."""
    if a.step % (1 << bits) or any(x < 0 for x in a.known):
        return uniform() if a.is_uniform else None
    result = LaneValue(tuple(x >> bits for x in a.known), a.mask >> bits, a.step >> bits)
    return result if a.bits == EXACT else result.modulo(max(a.bits - bits, 0))


@_modular
def joined(a: LaneValue, b: LaneValue) -> LaneValue | None:
    """One of the two, unknown which, the same in all lanes."""
    if a == b:
        return a
    if a.step == b.step == 0 and a.is_uniform and b.is_uniform:
        return _normal(LaneValue(a.known, a.mask | b.mask | (a.known[0] ^ b.known[0])))
    left, right = as_shift(a), as_shift(b)
    if left is None or right is None:
        return None
    apart = {y - x for x, y in zip(left.known, right.known, strict=True)}
    return LaneValue(left.known, 0, gcd(left.step, right.step, apart.pop())) if len(apart) == 1 else None


def _scaled(a: LaneValue, factor: int) -> LaneValue | None:
    if factor > 0 and factor & (factor - 1) == 0:
        return LaneValue(tuple(x * factor for x in a.known), a.mask * factor, a.step * factor)
    shifted = as_shift(a)
    if shifted is None:
        return None
    return LaneValue(tuple(x * factor for x in shifted.known), 0, abs(shifted.step * factor))


def _divisor(a: LaneValue) -> int:
    """A number that divides a uniform value."""
    shifted = as_shift(a)
    return 1 if shifted is None else gcd(shifted.step, shifted.known[0]) or 1


def _reach(a: LaneValue) -> int:
    """The bits that can be set, where nothing is added."""
    reach = a.mask
    for x in a.known:
        reach |= x
    return reach


def _normal(a: LaneValue) -> LaneValue:
    """The same, with bits that all lanes share left to the unknown where it covers them."""
    common = a.known[0] & a.mask
    if common and all(x & a.mask == common for x in a.known):
        return replace(a, known=tuple(x & ~a.mask for x in a.known))
    return a


def as_shift(a: LaneValue) -> LaneValue | None:
    """The same with everything unknown added, nothing xored; it then spans more."""
    if a.mask == 0:
        return a
    if any(x & a.mask for x in a.known):
        return None
    return LaneValue(a.known, 0, gcd(a.step, a.mask & -a.mask), a.bits)


def _as_bits(a: LaneValue) -> LaneValue | None:
    """The same with everything unknown xored, nothing added; it then spans more."""
    if a.step == 0:
        return a
    low = a.step & -a.step
    if a.is_uniform and a.mask == 0:
        common = gcd(a.step, a.known[0])
        return LaneValue((0,) * WARP, -(common & -common))
    if not 0 <= _reach(a) < low:
        return None
    return LaneValue(a.known, a.mask | -low, 0, a.bits)
