# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ranges of integers, and the range of an operation's results, which `semantics` lists."""

from collections.abc import Callable
from typing import TypeAlias

Range: TypeAlias = tuple[int, int]
"""The least and the greatest value, both included."""
RangeOf: TypeAlias = Callable[[Range, Range, int], Range | None]
"""The range of an operation on integers of any size, before the result is reduced to a type of that width in bits.

Shifts are by less than these bits. None if nothing is known, or there is no result.
"""


def wrap_signed(value: int, bits: int) -> int:
    """`value` modulo 2**bits, as a signed integer."""
    half = 1 << (bits - 1)
    return ((value + half) & ((1 << bits) - 1)) - half


def limits(bits: int, *, unsigned: bool = False) -> Range:
    """The range of all integers of `bits` bits."""
    return (0, (1 << bits) - 1) if unsigned else (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)


def clip_to(value: int, bits: int) -> int:
    """The signed integer of `bits` bits that is nearest to `value`."""
    least, most = limits(bits)
    return min(max(value, least), most)


def contains(outer: Range, inner: Range) -> bool:
    """Whether a range holds all integers of another."""
    return outer[0] <= inner[0] and inner[1] <= outer[1]


def either(a: Range, b: Range) -> Range:
    """The smallest range that holds two."""
    return min(a[0], b[0]), max(a[1], b[1])


def reduce_range(exact: Range, within: Range) -> Range:
    """The range of integers modulo the number of integers in `within`, as integers in it: wrapping, truncation, or the
    same bits read with another sign.
    """
    turns = (exact[0] - within[0]) // (within[1] - within[0] + 1)
    distance = turns * (within[1] - within[0] + 1)
    low, high = exact[0] - distance, exact[1] - distance
    return (low, high) if high <= within[1] else within


def clip_range(exact: Range, within: Range) -> Range:
    """The range of integers that are promised to be in `within`."""
    low, high = max(exact[0], within[0]), min(exact[1], within[1])
    return (low, high) if low <= high else within


def absolute(a: Range) -> Range:
    """The range of absolute values of integers of any size."""
    return max(a[0], -a[1], 0), max(-a[0], a[1])


def corners(function: Callable[[int, int], int]) -> RangeOf:
    """The range of a function that is monotonic in each operand."""

    def of(a: Range, b: Range, _bits: int) -> Range:
        results = [function(x, y) for x in a for y in b]
        return min(results), max(results)

    return of


def quotient(function: Callable[[int, int], int]) -> RangeOf:
    """The range of a division, which is monotonic in each operand for divisors of one sign."""

    def of(a: Range, b: Range, _bits: int) -> Range | None:
        divisors = [y for y in (b[0], min(b[1], -1)) if b[0] < 0] + [y for y in (max(b[0], 1), b[1]) if b[1] > 0]
        results = [function(x, y) for x in a for y in divisors]
        return (min(results), max(results)) if results else None

    return of


def remainder(a: Range, b: Range, _bits: int) -> Range | None:
    """The range of a remainder with the sign of the dividend."""
    most = max(abs(b[0]), abs(b[1])) - 1
    return None if most < 0 else (max(min(a[0], 0), -most), min(max(a[1], 0), most))


def modulo(a: Range, b: Range, _bits: int) -> Range | None:
    """The range of a remainder with the sign of the divisor."""
    if b == (0, 0):
        return None
    if a[0] >= 0 and b[0] >= 0:
        return 0, min(a[1], b[1] - 1)
    return min(b[0] + 1, 0), max(b[1] - 1, 0)


def conjunction(a: Range, b: Range, _bits: int) -> Range:
    if max(a[0], b[0]) >= 0:
        return 0, min(x[1] for x in (a, b) if x[0] >= 0)
    return -(1 << _length(a, b)), max(a[1], b[1])


def disjunction(a: Range, b: Range, _bits: int) -> Range:
    low = max(a[0], b[0]) if min(a[0], b[0]) >= 0 else min(a[0], b[0])
    return low, -1 if min(a[1], b[1]) < 0 else (1 << _length(a, b)) - 1


def exclusive(a: Range, b: Range, _bits: int) -> Range:
    span = 1 << _length(a, b)
    signs = {x < 0 for x in a}, {x < 0 for x in b}
    if all(len(sign) == 1 for sign in signs):
        return (0, span - 1) if signs[0] == signs[1] else (-span, -1)
    return -span, span - 1


def _length(a: Range, b: Range) -> int:
    """The bits that the integers of two ranges need beside their signs."""
    return max((x if x >= 0 else ~x).bit_length() for x in (*a, *b))


def shift(function: Callable[[int, int], int]) -> RangeOf:
    def of(a: Range, b: Range, bits: int) -> Range | None:
        least, most = max(b[0], 0), min(b[1], bits - 1)
        return corners(function)(a, (least, most), bits) if least <= most else None

    return of
