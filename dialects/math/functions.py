# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions of `math` in f32: accurate ones, and those of one instruction of PTX.

The accurate ones are within the errors that docs/language.md states, for every argument, and have no steps that PTX
leaves open but `ex2`, `rsqrt` and `rcp`. The others compute the same bits wherever they are computed. An argument is
brought into a short interval, where a polynomial is near the function; then the change of the argument is undone
(Muller, Elementary Functions, 2016, chapters 3, 4 and 11). The polynomials have the least greatest relative error, with
coefficients rounded to f32 one after the other, the lowest first, and the rest fitted again.

The argument of sine and cosine, any f32, is a multiple of pi/2 and a rest within -pi/4 and pi/4. Of moderate angles
three parts of pi/2 are subtracted (Cody and Waite, Software Manual for the Elementary Functions, 1980). Of others the
quotient by pi/2 is a product of integers, computing only the bits of the last two digits before the point and of those
after it (Payne and Hanek, Radian reduction for trigonometric functions, 1983).
"""

from collections.abc import Callable, Mapping
from functools import partial
from itertools import pairwise
from types import MappingProxyType
from typing import Any

from xdsl.dialects import math
from xdsl.dialects.arith import FastMathFlagsAttr
from xdsl.dialects.utils import FastMathFlag
from xdsl.ir import Operation

from ..ptx.base import float_bits, split_vector
from .arithmetic import TO_INTEGER, Arithmetic, Number, evaluate_polynomial

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


def _reduce_large(m: Arithmetic, x: object) -> tuple[Number, Number]:
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


def _reduce(m: Arithmetic, x: object) -> tuple[Number, Number]:
    """The rest of an angle, and its quadrant in the low bits of an i32."""
    shifted = m.fma(x, _TWO_BY_PI, TO_INTEGER)
    n = shifted - TO_INTEGER
    rest = x
    for part in _HALF_PI:
        rest = m.fma(n, -part, rest)
    return m.rarely(m.absolute(x) > _MODERATE, lambda: _reduce_large(m, x), (rest, m.bits(shifted)))


def _turn(m: Arithmetic, rest: Number, quadrant: Number) -> Number:
    """The sine of the rest of an angle in a quadrant."""
    square = rest * rest
    sine = m.fma(evaluate_polynomial(m, _SIN, square), m.fma(square, rest, 0.0), rest)  # of -0 it is -0
    cosine = m.fma(square, evaluate_polynomial(m, _COS, square), 1.0)
    size = m.where(m.is_set(quadrant, 0), cosine, sine)
    return m.from_bits(m.bits(size) ^ (quadrant & 2) << 30)


def sine(m: Arithmetic, x: object) -> Number:
    """The sine of an angle in radians; NaN for infinity."""
    return _turn(m, *_reduce(m, x))


def cosine(m: Arithmetic, x: object) -> Number:
    """The cosine of an angle in radians; NaN for infinity."""
    rest, quadrant = _reduce(m, x)
    return _turn(m, rest, quadrant + 1)


Function = Callable[[Arithmetic, Any], Any]
"""A function of one f32."""

FAST = FastMathFlagsAttr("fast")
"""The flags of a function that one instruction approximates, which takes subnormal numbers for 0."""
APPROXIMATE = FastMathFlagsAttr((FastMathFlag.APPROX_FUNC,))
"""The flags of a function that one instruction approximates."""

_LN_2 = 0.6931471824645996
_LOG2_E, _LOG2_E_LOW = 1.4426950216293335, 1.925963033500011e-08  # numbers as the sum of two in f32
_LOG10_E, _LOG10_E_LOW = 0.4342944920063019, -1.0103049952192578e-08
_LOG10_2, _LOG10_2_LOW = 0.3010300099849701, -1.432098883924482e-08
_LN_2_HIGH, _LN_2_REST = 0.693145751953125, 1.428606765330187e-06  # the product of the first and an exponent is exact
_LEAST, _LEAST_NORMAL, _ROOT_OF_HALF = 2.0**-149, 2.0**-126, 0x3F3504F3  # the bits of sqrt(1/2)

_EXP = (0.001382130547426641, 0.008368668146431446, 0.04166825860738754, 0.1666652113199234, 0.4999999403953552, 1, 1)
"""exp(r), |r| <= ln(2) / 2, the highest coefficient first; the relative error is below 2^-28."""
_TANH = (-0.00624606478959322, 0.02105250582098961, -0.05384785309433937, 0.133325457572937, -0.33333316445350647)
"""(tanh(x) / x - 1) / x^2 in x^2, x <= 0.55; the relative error of tanh is below 2^-29."""
_LOG = (
    -0.0763639509677887, 0.12762197852134705, -0.1315961331129074, 0.14201581478118896, -0.166234090924263,
    0.2000124156475067, -0.2500081956386566, 0.3333333134651184,
)  # fmt: skip
"""(log(1 + f) - f + f^2 / 2) / f^3, 1 + f from sqrt(1/2) to sqrt(2); the relative error of log is below 2^-27."""
_ERF = (
    7.806903886375949e-05, -0.0007997853099368513, 0.005187162198126316, -0.026853347197175026, 0.11283578723669052,
    -0.3761262595653534, 0.12837916612625122,
)  # fmt: skip
"""erf(x) / x - 1 in x^2, x <= 1; the relative error of erf is below 2^-29."""
_ERFC = (
    -2.169434810639359e-05, 0.00044143912964500487, -0.004205144476145506, 0.025210034102201462, -0.10842173546552658,
    -0.6332166194915771, -1.1295802593231201, 0.00018846982857212424,
)  # fmt: skip
"""log(1 - erf(x)), x from 1 to 4; the relative error of erf is below 2^-35."""


def _power(m: Arithmetic, x: object, bias: int) -> tuple[Number, Number]:
    """exp(x) as a number near 1 and the exponent of 2 that it is to be scaled by, plus a bias, in an i32's low bits."""
    shifted = m.fma(x, _LOG2_E, TO_INTEGER + bias)
    n = shifted - (TO_INTEGER + bias)
    r = m.fma(n, -_LN_2_REST, m.fma(n, -_LN_2_HIGH, x))
    return evaluate_polynomial(m, _EXP, r), m.bits(shifted)


def _exp(m: Arithmetic, x: object) -> Number:
    """Beyond the bounds the result is 0 or infinity. Two factors scale it, since one would overflow; the first product
    is exact, so that a subnormal result is rounded once.
    """
    power, exponent = _power(m, m.least(m.greatest(x, -104.0), 89.0), 2 * 127)
    half = (exponent << 22) & 0x7F800000
    return power * m.from_bits(half) * m.from_bits((exponent << 23) - half)


def _exp_of_moderate(m: Arithmetic, x: object) -> Number:
    """exp of an argument whose result is a normal number."""
    power, exponent = _power(m, x, 127)
    return power * m.from_bits(exponent << 23)


def _tanh(m: Arithmetic, x: Number) -> Number:
    """1 - 2 / (exp(2x) + 1), and near 0, where that cancels, a polynomial. Newton's step makes the quotient the nearest
    number, whichever of its neighbours `rcp` gives.
    """
    size, square = m.absolute(x), x * x
    near = m.fma(evaluate_polynomial(m, _TANH, square), m.fma(square, x, 0.0), x)  # of -0 it is -0
    bounded = m.least(size, 10.0)
    divisor = _exp_of_moderate(m, bounded + bounded) + 1.0
    quotient = m.approximate("rcp", divisor, ftz=True)  # of a normal number
    quotient = m.fma(quotient, m.fma(-divisor, quotient, 1.0), quotient)
    return m.where(size < 0.55, near, m.with_sign(m.fma(quotient, -2.0, 1.0), x))


def _split(m: Arithmetic, x: Number) -> tuple[Number, Number, Number]:
    """n, f and log(1 + f) - f, where x is 2^n (1 + f)."""
    subnormal = x < _LEAST_NORMAL
    bits = m.bits(m.where(subnormal, x * 2.0**23, x))
    exponent = (bits - _ROOT_OF_HALF) & 0xFF800000
    n = m.fma(m.to_float(exponent), 2.0**-23, m.where(subnormal, -23.0, 0.0))
    f = m.from_bits(bits - exponent) - 1.0
    square = f * f
    return n, f, m.fma(f * square, evaluate_polynomial(m, _LOG, f), square * -0.5)


def _complete(m: Arithmetic, x: Number, value: Number) -> Number:
    """A logarithm of x, which is right where x is positive and finite."""
    value = m.where(x < float("inf"), value, x)
    value = m.where(x < 0.0, float("nan"), value)
    return m.where(m.absolute(x) < _LEAST, -float("inf"), value)


def _log(m: Arithmetic, x: object) -> Number:
    n, f, rest = _split(m, x)
    return _complete(m, x, m.fma(n, _LN_2, f + rest))


def _log2(m: Arithmetic, x: object) -> Number:
    n, f, rest = _split(m, x)
    rest = m.fma(rest, _LOG2_E, f * _LOG2_E_LOW)
    return _complete(m, x, n + m.fma(f, _LOG2_E, rest))


def _log10(m: Arithmetic, x: object) -> Number:
    n, f, rest = _split(m, x)
    rest = m.fma(n, _LOG10_2_LOW, m.fma(rest, _LOG10_E, f * _LOG10_E_LOW))
    return _complete(m, x, m.fma(n, _LOG10_2, m.fma(f, _LOG10_E, rest)))


def _erf(m: Arithmetic, x: Number) -> Number:
    size = m.absolute(x)
    near = m.fma(evaluate_polynomial(m, _ERF, x * x), x, x)
    rest = _exp_of_moderate(m, evaluate_polynomial(m, _ERFC, m.least(size, 4.0)))
    return m.where(size < 1.0, near, m.with_sign(1.0 - rest, x))


def _approximate(name: str, before: float, after: float, ftz: bool, m: Arithmetic, x: Number) -> Number:
    """A function that an instruction computes of a scaled argument, or up to a factor."""
    value = m.approximate(name, x if before == 1.0 else x * before, ftz)
    return value if after == 1.0 else value * after


INSTRUCTIONS: Mapping[type[Operation], tuple[str, float, float]] = MappingProxyType({
    math.ExpOp: ("ex2", _LOG2_E, 1.0), math.Exp2Op: ("ex2", 1.0, 1.0), math.LogOp: ("lg2", 1.0, _LN_2),
    math.Log2Op: ("lg2", 1.0, 1.0), math.Log10Op: ("lg2", 1.0, _LOG10_2), math.SqrtOp: ("sqrt", 1.0, 1.0),
    math.RsqrtOp: ("rsqrt", 1.0, 1.0), math.SinOp: ("sin", 1.0, 1.0), math.CosOp: ("cos", 1.0, 1.0),
    math.TanhOp: ("tanh", 1.0, 1.0),
})  # fmt: skip
"""The instruction that approximates a function, and the factors of its operand and of its result."""
ACCURATE: Mapping[type[Operation], Function] = MappingProxyType({
    math.ExpOp: _exp, math.Exp2Op: partial(_approximate, *INSTRUCTIONS[math.Exp2Op], False),
    math.LogOp: _log, math.Log2Op: _log2, math.Log10Op: _log10,
    math.RsqrtOp: partial(_approximate, *INSTRUCTIONS[math.RsqrtOp], False),
    math.SinOp: sine, math.CosOp: cosine, math.TanhOp: _tanh, math.ErfOp: _erf,
})  # fmt: skip
"""exp2 and rsqrt are one instruction each, whose error of 2 ulp is that of an accurate function."""


def function_of(op: Operation) -> Function | None:
    """How a function of `math` is computed in f32, by its kind and its flags; None for one that is exact or rounded
    correctly, and for other operations.
    """
    kind, flags = type(op), op.properties.get("fastmath")
    if kind is math.SqrtOp and float_bits(split_vector(op.results[0].type)[0]) == 64:
        return None
    if kind in INSTRUCTIONS and isinstance(flags, FastMathFlagsAttr) and FastMathFlag.APPROX_FUNC in flags.data:
        return partial(_approximate, *INSTRUCTIONS[kind], flags == FAST and kind is not math.TanhOp)
    return ACCURATE.get(kind)
