# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sine and cosine of any f32.

An angle is a multiple of pi/2 and a rest within -pi/4 and pi/4. Of moderate angles three parts of pi/2 are subtracted
(Cody and Waite, Software Manual for the Elementary Functions, 1980). Of others the quotient by pi/2 is a product of
integers, computing only the bits of the last two digits before the point and of those after it (Payne and Hanek, Radian
reduction for trigonometric functions, 1983).
"""

from itertools import pairwise
from typing import Any

from .arithmetic import TO_INTEGER, Arithmetic, evaluate_polynomial

_TWO_BY_PI = 0.6366197466850281
_HALF_PI = (1.570796251296997, 7.549789415861596e-08, 5.390302953474238e-15)
"""pi/2 as the sum of three numbers of f32 of one sign, so that the rest of -0 is -0."""
_MODERATE = 105615.0
"""Up to here the multiples of the first part, less the angle, are exact, and the third suffices."""
_DIGITS = (0xA2F9, 0x836E4E44, 0x1529FC27, 0x57D1F534, 0xDDC0DB62, 0x95993C43, 0x9041FE51)
"""2/pi * 2^208 in words of 32 bits; its first bit has the value 1/2."""
_FIRST = 136
"""The exponent, with its bias, of an angle whose product with the first words is wanted."""

_SIN = (-0.00019517907639965415, 0.008332187309861183, -0.16666655242443085)
"""(sin(x) / x - 1) / x^2 in x^2; the relative error of sin is below 2^-27."""
_COS = (2.4432336431345902e-05, -0.0013887309469282627, 0.04166664555668831, -0.5)
"""(cos(x) - 1) / x^2 in x^2; the relative error of cos is below 2^-32."""


def _reduce_large(m: Arithmetic, x: object) -> tuple[Any, Any]:
    """The rest and the quadrant of a large angle; NaN for infinity.

    The angle is an integer of 24 bits times a power of 2, which selects three words of the digits: the integer times
    these, modulo 2^96, is the quotient: two of its bits are the quadrant, the others the fraction.
    """
    bits = m.bits(m.absolute(x))
    place = (bits >> 23) - _FIRST
    words = list(_DIGITS)
    for bit in (6, 5):
        chosen = m.is_set(place, bit)
        skip = 1 << bit - 5
        words = [m.where(chosen, far, near) for near, far in zip(words, words[skip:], strict=False)]
    shift = m.extended(place & 31)
    high, middle, low = (((m.extended(one) << 32 | m.extended(two)) << shift) >> 32 for one, two in pairwise(words))
    integer = m.extended(bits & 0x7FFFFF | 0x800000)
    quotient = (integer * high << 32) + integer * middle + (integer * low >> 32)
    fraction = m.halved(quotient << 2)  # of 2^63, from -1/2 to 1/2
    nearest = m.to_float(fraction)
    rest = m.to_float(fraction - m.to_i64(nearest))
    first, second = (part * 2.0**-63 for part in _HALF_PI[:2])
    rest = m.fma(nearest, first, m.fma(rest, first, nearest * second))
    quadrant = m.truncated((quotient + (1 << 61)) >> 62)
    negative = m.is_set(m.bits(x), 31)
    return m.fma(x, 0.0, m.where(negative, -rest, rest)), m.where(negative, 0 - quadrant, quadrant)


def _reduce(m: Arithmetic, x: object) -> tuple[Any, Any]:
    """The rest of an angle, and its quadrant in the low bits of an i32."""
    shifted = m.fma(x, _TWO_BY_PI, TO_INTEGER)
    n = shifted - TO_INTEGER
    rest = x
    for part in _HALF_PI:
        rest = m.fma(n, -part, rest)
    return m.rarely(m.absolute(x) > _MODERATE, lambda: _reduce_large(m, x), (rest, m.bits(shifted)))


def _turn(m: Arithmetic, rest: Any, quadrant: Any) -> Any:
    """The sine of the rest of an angle in a quadrant."""
    square = rest * rest
    sine = m.fma(evaluate_polynomial(m, _SIN, square), m.fma(square, rest, 0.0), rest)  # of -0 it is -0
    cosine = m.fma(square, evaluate_polynomial(m, _COS, square), 1.0)
    size = m.where(m.is_set(quadrant, 0), cosine, sine)
    return m.from_bits(m.bits(size) ^ (quadrant & 2) << 30)


def sine(m: Arithmetic, x: object) -> Any:
    """The sine of an angle in radians; NaN for infinity."""
    return _turn(m, *_reduce(m, x))


def cosine(m: Arithmetic, x: object) -> Any:
    """The cosine of an angle in radians; NaN for infinity."""
    rest, quadrant = _reduce(m, x)
    return _turn(m, rest, quadrant + 1)
