# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Quotients and remainders of floats, as Python's `//` and `%`."""

from collections.abc import Callable
from typing import Any

from .dtypes import Float32


def floor_divide(
    x: Any, y: Any, unary: Callable[[str, Any], Any], fma: Callable[..., Any], where: Callable[..., Any]
) -> tuple[Any, Any]:
    """The quotient rounded down, and the remainder, of two floats of one type.

    The remainder is Python's where the quotient is less than 2^24 (2^53 of Float64): the rounded quotient may then be
    one too large, which the sign of the remainder shows. A remainder of 0 has the sign of the divisor. The remainder of
    a division by 0 is NaN, and its quotient that of `/`.
    """
    dtype = x.dtype
    if dtype.bits < Float32.bits:
        quotient, rest = floor_divide(x.to(Float32), y.to(Float32), unary, fma, where)
        return quotient.to(dtype), rest.to(dtype)
    quotient = unary("floor", x / y)
    rest = where(quotient == 0, x, fma(-quotient, y, x))  # 0 times an infinite y were NaN
    below = (rest != 0) & ((rest < 0) ^ (y < 0))
    zero = abs(rest)
    zero = where(y < 0, -zero, zero)
    return where(below, quotient - 1.0, quotient), where(below, rest + y, where(rest == 0, zero, rest))
