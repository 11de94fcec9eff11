# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The tangent, and the inverse functions of angles: polynomials, since PTX has no instructions for them.

Arguments are brought into a short interval (Muller, Elementary Functions, 11): by the addition theorem of the
arctangent, by halving the angle of an arcsine, and by subtracting multiples of pi/2 in three parts. The polynomials are
interpolated at Chebyshev nodes. Errors are at most 3 ulp, of tan up to angles of 2**20.
"""

import math as python
from collections.abc import Callable, Sequence

from ...base.errors import Code, TilefoldError
from ..scalars.arithmetic import unary_type
from ..scalars.casts import check_operand, is_number
from ..scalars.dtypes import Float32, Int32
from ..scalars.operators import Operand
from ..tensors.fragments import Vec, elementwise
from .bits import bitcast
from .math import absolute, fma, maximum, minimum, of_number, round_even, sqrt, where

_ATAN = (-0.06459370416, 0.1074629617, -0.1426423226, 0.1999955006, -0.3333333181)
_ASIN = (0.03380585351, 0.01707778704, 0.03111617453, 0.04459803025, 0.07500098772, 0.1666666632)
_TAN = (
    0.002501985099,
    -0.001622219211,
    0.005873365827,
    0.00797011053,
    0.02205487461,
    0.05394961866,
    0.1333340406,
    0.333333329,
)
"""Coefficients of f(x) = x + x * z * p(z), z = x * x, the highest first: up to tan(pi/8), 1/2, and 0.88, since
multiples of pi/2 are found in Float32.
"""
_HALF_PI = (1.5707963705062866, -4.371138828673793e-08, -1.7150994166548195e-15)
"""pi/2 as the sum of three numbers of Float32."""
_TAN_EIGHTH = 0.4142135623730951
_TAN_THREE_EIGHTHS = 2.414213562373095


def _odd(coefficients: Sequence[float], x: Operand, z: Operand) -> Operand:
    """x + x * z * p(z)."""
    value = fma(z, coefficients[0], coefficients[1])
    for coefficient in coefficients[2:]:
        value = fma(value, z, coefficient)
    return fma(x * z, value, x)


def _copy_sign(size: Operand, x: Operand) -> Operand:
    """A size with the sign of x."""
    return where(bitcast(x, Int32) < 0, -size, size)


def _of_size(a: Operand) -> Operand:
    """The arctangent of a number that is not negative."""
    steep, middle = a > _TAN_THREE_EIGHTHS, a > _TAN_EIGHTH
    above = where(steep, -1.0, where(middle, a - 1.0, a))
    t = above / where(steep, a, where(middle, a + 1.0, 1.0))
    high = where(steep, _HALF_PI[0], where(middle, _HALF_PI[0] / 2, 0.0))
    low = where(steep, _HALF_PI[1], where(middle, _HALF_PI[1] / 2, 0.0))
    return high + (_odd(_ATAN, t, t * t) + low)


def _atan(x: object) -> Operand:
    return _copy_sign(_of_size(absolute(x)), x)


def _atan2(y: Operand, x: Operand) -> Operand:
    first, second = absolute(y), absolute(x)
    most, least = maximum(first, second), minimum(first, second)
    angle = _of_size(where(most == least, where(most == 0.0, 0.0, 1.0), least / most))
    angle = where(first > second, _HALF_PI[0] - (angle - _HALF_PI[1]), angle)
    angle = where(bitcast(x, Int32) < 0, 2 * _HALF_PI[0] - (angle - 2 * _HALF_PI[1]), angle)
    return where((x != x) | (y != y), x + y, _copy_sign(angle, y))


def _half(x: object) -> tuple[Operand, Operand]:
    """Whether |x| is above 1/2; and the arcsine of |x|, or there half its complement."""
    a = absolute(x)
    above = a > 0.5
    z = where(above, fma(a, -0.5, 0.5), a * a)
    return above, _odd(_ASIN, where(above, sqrt(z), a), z)


def _asin(x: object) -> Operand:
    above, angle = _half(x)
    return _copy_sign(where(above, _HALF_PI[0] - (2.0 * angle - _HALF_PI[1]), angle), x)


def _acos(x: Operand) -> Operand:
    above, angle = _half(x)
    far = where(x < 0.0, 2 * _HALF_PI[0] - (2.0 * angle - 2 * _HALF_PI[1]), 2.0 * angle)
    return where(above, far, _HALF_PI[0] - (_copy_sign(angle, x) - _HALF_PI[1]))


def _tan(x: Operand) -> Operand:
    n = round_even(x * (2 / python.pi))
    r = x
    for part in _HALF_PI:
        r = fma(n, -part, r)
    t = _odd(_TAN, r, r * r)
    return where((n.to(Int32) & 1) == 1, -1.0 / t, t)


def _function(name: str, description: str, of_values: Callable[..., Operand]) -> Callable[..., Operand]:
    """The function of a name: Python's `math` serves numbers, `of_values` serves values and elements."""

    def function(*operands: Operand, fastmath: bool = False) -> Operand:
        if all(map(is_number, operands)):
            return of_number(name, getattr(python, name), *operands)
        for operand in operands:
            check_operand(operand)
        types = [unary_type("sin", operand.dtype) for operand in operands if not is_number(operand)]
        result = max(types, key=lambda dtype: dtype.bits)
        if result.bits > Float32.bits:
            message = f"{name} is not computed in {result}"
            raise TilefoldError(Code.BUILD_VALUE, message, "convert to Float32 by .to(cute.Float32)")
        given = [Float32(x) if is_number(x) else x.to(Float32) for x in operands]
        some = any(isinstance(x, Vec) for x in given)
        return (elementwise(of_values, Float32, *given) if some else of_values(*given)).to(result)

    if name == "atan2":

        def of_two(y: object, x: object, fastmath: bool = False) -> Operand:
            return function(y, x, fastmath=fastmath)

        made: Callable[..., Operand] = of_two
    else:

        def of_one(x: object, fastmath: bool = False) -> Operand:
            return function(x, fastmath=fastmath)

        made = of_one
    made.__name__ = made.__qualname__ = name
    made.__doc__ = (
        f"{description}, for numbers, values, or the elements of fragments, computed in Float32 with an error of\n"
        "at most 3 ulp. `fastmath` has no effect: no instruction approximates the function."
    )
    return made


tan = _function("tan", "The tangent of an angle in radians up to 2**20", _tan)
asin = _function("asin", "The angle in radians, -pi/2 to pi/2, with this sine", _asin)
acos = _function("acos", "The angle in radians, 0 to pi, with this cosine", _acos)
atan = _function("atan", "The angle in radians, -pi/2 to pi/2, with this tangent", _atan)
atan2 = _function("atan2", "The angle in radians, -pi to pi, of the point (x, y)", _atan2)
