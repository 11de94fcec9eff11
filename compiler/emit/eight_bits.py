# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The bits of 8-bit floats, e4m3 (without infinities) and e5m2 (OCP 8-bit Floating Point Specification)."""

import math


def bits_of(value: float, mantissa: int) -> int:
    """The byte of the number nearest to `value`, ties to even, with 3 (e4m3) or 2 (e5m2) bits of mantissa.

    What is beyond the greatest number rounds to the next bit pattern, which is NaN of e4m3 and infinity of e5m2.
    """
    beyond = 0x7F if mantissa == 3 else 0x7C
    sign = 0x80 if math.copysign(1.0, value) < 0 else 0
    if math.isnan(value):
        return sign | 0x7F
    size = abs(value)
    if math.isinf(size):
        return sign | beyond
    return sign | min(range(beyond + 1), key=lambda bits: (abs(_number(bits, mantissa) - size), bits & 1))


def _number(bits: int, mantissa: int) -> float:
    """The positive number of a bit pattern, as if all exponents were those of numbers."""
    bias = (1 << (6 - mantissa)) - 1
    exponent, fraction = bits >> mantissa, bits & ((1 << mantissa) - 1)
    if exponent == 0:
        return math.ldexp(fraction, 1 - bias - mantissa)
    return math.ldexp((1 << mantissa) + fraction, exponent - bias - mantissa)
