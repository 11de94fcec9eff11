# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Powers (`**`) of values, fragments and numbers; quotients and remainders of floats, as Python's `//` and `%`."""

import math as python
from collections.abc import Callable

from ...base.errors import Code, TilefoldError
from .arithmetic import check_computed
from .casts import common_type, is_number
from .dtypes import Float32
from .operators import Operand

Function = Callable[[str, Operand], Operand]
"""A function of a value or a fragment, by its name: `sqrt`, `rsqrt`, `exp2`, `log2`."""
Filled = Callable[[Operand, int], Operand]
"""A number in the type, and the shape, of a value or a fragment."""


def power(base: Operand, exponent: Operand, function: Function, filled: Filled) -> Operand:
    """`base ** exponent`, not both Python numbers.

    A static integer multiplies, ±0.5 is a root. Any other power is `exp2(exponent * log2(base))`, in Float32 at least:
    NaN of a negative base. Raises TilefoldError (E5002) for powers of integers that are not integers, or not static.
    """
    dtype = common_type(base, exponent)
    static = bool(is_number(exponent))
    if static and (isinstance(exponent, int) or exponent.is_integer()):
        return _multiply_repeatedly(base, int(exponent), filled)
    if dtype.kind != "float":
        raise TilefoldError(
            Code.BUILD_VALUE,
            f"the power of integers, {base!r} ** {exponent!r}, needs a static exponent",
            "write 1 << n for 2 ** n, or convert to cute.Float32",
        )
    check_computed(dtype)
    if static and abs(exponent) == 0.5:
        return function("sqrt" if exponent > 0 else "rsqrt", base)
    wide = Float32 if dtype.bits < 32 else dtype
    factor = exponent if static else exponent.to(wide)
    if not is_number(base):
        return function("exp2", function("log2", base.to(wide)) * factor).to(dtype)
    if base <= 0:
        raise TilefoldError(Code.BUILD_VALUE, f"{base} ** x is undefined for a value x", "the base must be positive")
    return function("exp2", factor * python.log2(base)).to(dtype)


def _multiply_repeatedly(base: Operand, exponent: int, filled: Filled) -> Operand:
    if exponent < 0:
        if base.dtype.kind != "float":
            raise TilefoldError(
                Code.BUILD_VALUE, f"{base!r} ** {exponent} is not an integer", "convert to cute.Float32"
            )
        return 1 / _multiply_repeatedly(base, -exponent, filled)
    if exponent == 0:
        return filled(base, 1)
    square: Operand = base
    result: Operand = None
    while exponent:
        if exponent & 1:
            result = square if result is None else result * square
        exponent >>= 1
        square = square * square if exponent else square
    return result


def floor_divide(
    x: Operand,
    y: Operand,
    unary: Callable[[str, Operand], Operand],
    fma: Callable[..., Operand],
    where: Callable[..., Operand],
) -> tuple[Operand, Operand]:
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
