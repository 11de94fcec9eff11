# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Floating-point numbers of each type, exactly, without the simulator: a reference for what the compiler computes.

A number of any type is a double here, since f64 holds all of them; an integer is a signed one of 64 bits. Sums,
products, quotients and square roots of narrower types are rounded twice, first to f64, which changes nothing: its 53
bits are at least 2 * 24 + 2 (S. Figueroa, When is double rounding innocuous?, 1995).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

Doubles = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Format:
    """A floating-point type: bits of the significand, exponents of the least and of the greatest number."""

    dtype: Any
    digits: int
    least: int
    greatest: float
    saturates: bool = False

    @property
    def bits(self) -> int:
        """The width of the type."""
        return np.dtype(self.dtype).itemsize * 8


FORMATS: Mapping[str, Format] = MappingProxyType({
    "f8E4M3FN": Format(ml_dtypes.float8_e4m3fn, 4, -9, 448.0, saturates=True),
    "f8E5M2": Format(ml_dtypes.float8_e5m2, 3, -16, 57344.0, saturates=True),
    "f16": Format(np.float16, 11, -24, 65504.0),
    "bf16": Format(ml_dtypes.bfloat16, 8, -133, float(2**128 - 2**120)),
    "f32": Format(np.float32, 24, -149, float(2**128 - 2**104)),
    "f64": Format(np.float64, 53, -1074, float(np.finfo(np.float64).max)),
})  # fmt: skip


def decoded(patterns: NDArray[Any], type: str) -> Doubles:
    """The numbers of bit patterns, in integers of any width."""
    form = FORMATS[type]
    with np.errstate(invalid="ignore"):
        return patterns.astype(f"u{form.bits // 8}").view(form.dtype).astype(np.float64)


def encoded(x: Doubles, type: str) -> NDArray[np.uint64]:
    """The bit patterns of numbers that the type holds."""
    form = FORMATS[type]
    with np.errstate(over="ignore", invalid="ignore"):
        return np.ascontiguousarray(x.astype(form.dtype)).view(f"u{form.bits // 8}").astype(np.uint64)


def rounded(x: Doubles, type: str) -> Doubles:
    """To the nearest number of a type, ties to even; what is too large to infinity, or to the greatest of 8 bits."""
    form = FORMATS[type]
    if type == "f64":
        return x
    finite = np.where(np.isfinite(x), x, 0.0)
    _, exponent = np.frexp(finite)
    unit = np.maximum(exponent - form.digits, form.least)
    near = np.copysign(np.ldexp(np.rint(np.ldexp(finite, -unit)), unit), x)
    near = np.where(np.isfinite(x), near, x)
    limit = form.greatest if form.saturates else np.inf
    return np.where(np.abs(near) > form.greatest, np.copysign(limit, near), near)


def of_fraction(exact: Fraction, type: str) -> float:
    """The nearest number of a type to an exact one that is not 0, ties to even."""
    form = FORMATS[type]
    exponent = exact.numerator.bit_length() - exact.denominator.bit_length() - form.digits
    if abs(exact) < Fraction(2) ** (exponent + form.digits - 1):
        exponent -= 1
    if abs(exact) >= Fraction(2) ** (exponent + form.digits):
        exponent += 1
    unit = Fraction(2) ** max(exponent, form.least)
    near = round(exact / unit) * unit  # Python rounds half to even
    sign = -1.0 if exact < 0 else 1.0
    return sign * np.inf if abs(near) > Fraction(form.greatest) else sign * float(abs(near))


def fused(a: Doubles, b: Doubles, c: Doubles, type: str) -> Doubles:
    """a * b + c, rounded once."""
    with np.errstate(all="ignore"):
        result = np.array(a * b + c)  # right where it is not finite, or 0
    for index in np.ndindex(result.shape):
        x, y, z = float(a[index]), float(b[index]), float(c[index])
        if np.isfinite((x, y, z)).all() and (exact := Fraction(x) * Fraction(y) + Fraction(z)):
            result[index] = of_fraction(exact, type)
        elif np.isfinite((x, y, z)).all():
            result[index] = -0.0 if np.signbit(z) and np.signbit(x) != np.signbit(y) else 0.0
    return result


def of_integers(x: Integers, type: str, unsigned_bits: int = 0) -> Doubles:
    """Integers as the nearest numbers; of `unsigned_bits`, read without a sign where these are given."""
    whole = [int(value) & ((1 << unsigned_bits) - 1) if unsigned_bits else int(value) for value in x.ravel()]
    return np.array([of_fraction(Fraction(n), type) if n else 0.0 for n in whole], np.float64).reshape(x.shape)


def to_integers(x: Doubles, type: str, bits: int, signed: bool) -> Integers:
    """Truncated; beyond the integers, the last one; NaN as the PTX ISA says (cvt). Less than 32 bits are clamped."""
    low = -(1 << bits - 1) if signed else 0
    high = (1 << (bits - 1 if signed else bits)) - 1
    wide = max(bits, 32)
    of_nan = 0 if type != "f64" and wide == 32 else -(1 << wide - 1) if signed else 1 << wide - 1
    found: list[int] = []
    for value in x.ravel().tolist():
        number = of_nan if np.isnan(value) else (high if value > 0 else low) if np.isinf(value) else int(value)
        found.append(wrapped(min(max(number, low), high), bits))
    return np.array(found, np.int64).reshape(x.shape)


def wrapped(value: int, bits: int) -> int:
    """An integer modulo 2**bits, with a sign: a true i1 is -1."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> bits - 1 else value


def wrap(x: NDArray[Any], bits: int) -> Integers:
    """Integers of 64 bits modulo 2**bits, with a sign."""
    shift = np.uint64(64 - bits)
    return (x.astype(np.int64).view(np.uint64) << shift).view(np.int64) >> np.int64(64 - bits)


def unsigned(x: Integers, bits: int) -> NDArray[np.uint64]:
    """Signed integers of so many bits, read without a sign."""
    return x.view(np.uint64) & np.uint64((1 << bits) - 1)


def extreme(greater: bool, of_numbers: bool) -> Callable[[Doubles, Doubles], Doubles]:
    """min or max, for which -0 is below +0. NaN counts only where both are, or, without `of_numbers`, where one is."""

    def function(a: Doubles, b: Doubles) -> Doubles:
        ours = (a > b) if greater else (a < b)
        ours |= (a == b) & (np.signbit(b) if greater else np.signbit(a))
        result = np.where(ours, a, b)
        if of_numbers:
            return np.where(np.isnan(a), b, np.where(np.isnan(b), a, result))
        return np.where(np.isnan(a) | np.isnan(b), np.nan, result)

    return function


def half_away(x: Doubles) -> Doubles:
    """The nearest integer, of two equally near ones the greater in size."""
    whole = np.trunc(x)
    with np.errstate(invalid="ignore"):
        return np.where(np.isfinite(x), np.copysign(whole + np.copysign(np.abs(x - whole) >= 0.5, x), x), x)
