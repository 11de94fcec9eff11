# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Instructions on f32 and f64 that round toward zero or an infinity, flush subnormal numbers, or saturate (PTX ISA,
Floating Point Instructions: rounding modifiers, .ftz, .sat).

A result is rounded to the nearest number first. Whether the exact one lies above or below is decided for f32 in double
precision, in which products of two f32 are exact, and a sum is known with its error; for f64 by fractions.
"""

from collections.abc import Callable, Mapping
from fractions import Fraction
from types import MappingProxyType

import numpy as np

from ...engine import NumPyType
from ..values import Value, fused_multiply_add
from .arithmetic import MAXIMUM_NUMBER, MINIMUM_NUMBER

_SINGLE: NumPyType = np.dtype(np.float32)
_LEAST = np.float32(2.0**-126)
_MODIFIERS = ("rn", "rz", "rm", "rp", "ftz", "sat")


def rounded_instruction(
    opcode: str, modifiers: tuple[str, ...], dtype: NumPyType = _SINGLE
) -> tuple[Callable[..., Value], int] | None:
    """The function of an instruction on f32 or f64 and its number of operands; None for one that there is not."""
    if opcode not in _NEAREST or any(word not in _MODIFIERS for word in modifiers):
        return None
    nearest, above, count = _NEAREST[opcode]
    flushes, saturates = "ftz" in modifiers, "sat" in modifiers
    mode = next((word for word in modifiers if word in ("rz", "rm", "rp")), "")
    if mode and above is None:
        return None
    if mode and dtype != _SINGLE:
        above = _by_fractions(opcode)

    def run(*given: Value) -> Value:
        operands = [np.asarray(x, dtype) for x in given]
        if flushes:
            operands = [flush(x) for x in operands]
        value = np.asarray(nearest(*operands), dtype)
        if mode and above is not None:
            value = _moved(value, above(value.astype(np.float64), *[x.astype(np.float64) for x in operands]), mode)
        if saturates:
            value = np.minimum(np.fmax(value, dtype.type(0)), dtype.type(1))  # NaN becomes 0
        return flush(value) if flushes else value

    return run, count


def _by_fractions(opcode: str) -> Callable[..., Value]:
    """The sign of the distance of the exact result above the nearest f64, for operands in all lanes."""
    exact = _EXACT[opcode]

    def above(value: Value, *given: Value) -> Value:
        distances: Value = np.zeros(value.shape, np.float64)
        for place in np.ndindex(value.shape):
            operands = [float(x[place]) for x in given]
            if all(map(np.isfinite, operands)) and not np.isnan(value[place]):
                distances[place] = _distance(float(value[place]), operands, exact)
        return distances

    return above


def _distance(value: float, operands: list[float], exact: Callable[..., Fraction]) -> int:
    """The sign of the exact result less a number, which may be infinite."""
    numbers = [Fraction(x) for x in operands]
    try:
        wanted = exact(*numbers)
    except ZeroDivisionError:  # infinity is exact there
        return 0
    if np.isinf(value):
        return -1 if value > 0 else 1
    found = Fraction(value) ** 2 if exact is _number else Fraction(value)
    return (wanted > found) - (wanted < found)


_where: Callable[..., Value] = np.where


def flush(x: Value) -> Value:
    """Numbers with zeros of the same sign for subnormal ones."""
    return _where(np.abs(x) < _LEAST, np.copysign(np.float32(0), x), x)


def _moved(value: Value, above: Value, mode: str) -> Value:
    """Nearest numbers moved to the next one where the mode wants it; `above` is positive where the exact number is
    above, negative where it is below.
    """
    down = (above < 0) & ((mode == "rm") | ((mode == "rz") & (value > 0)))
    up = (above > 0) & ((mode == "rp") | ((mode == "rz") & (value < 0)))
    value = _where(down, np.nextafter(value, value.dtype.type(-np.inf)), value)
    return _where(up, np.nextafter(value, value.dtype.type(np.inf)), value)


def _above_sum(value: Value, a: Value, b: Value) -> Value:
    total = a + b
    part = total - a
    error = (a - (total - part)) + (b - part)
    distance = total - value
    return _where(distance != 0, distance, _where(np.isfinite(value), error, 0))


def _above_fma(value: Value, a: Value, b: Value, c: Value) -> Value:
    return _above_sum(value, a * b, c)


def _above_product(value: Value, a: Value, b: Value) -> Value:
    return a * b - value


def _above_quotient(value: Value, a: Value, b: Value) -> Value:
    rest = _where(np.isfinite(value), a - value * b, 0) * np.sign(b)
    too_large = np.isinf(value) & np.isfinite(a) & (b != 0)
    return _where(np.isfinite(b), _where(too_large, -value, rest), 0)


def _above_root(value: Value, a: Value) -> Value:
    return _where(np.isfinite(value), a - value * value, 0)


def _above_difference(value: Value, a: Value, b: Value) -> Value:
    return _above_sum(value, a, -b)


def _reciprocal(a: Value) -> Value:
    return a.dtype.type(1) / a


def _above_reciprocal(value: object, a: object) -> Value:
    return _above_quotient(value, 1.0, a)


def _fma(a: Value, b: Value, c: Value) -> Value:
    return fused_multiply_add(a, b, c, a.dtype)


def _same(a: object) -> Value:
    return a


_NEAREST: Mapping[str, tuple[Callable[..., Value], Callable[..., Value] | None, int]] = MappingProxyType({
    "add": (np.add, _above_sum, 2), "sub": (np.subtract, _above_difference, 2),
    "mul": (np.multiply, _above_product, 2),
    "fma": (_fma, _above_fma, 3),
    "div": (np.divide, _above_quotient, 2), "sqrt": (np.sqrt, _above_root, 1),
    "rcp": (_reciprocal, _above_reciprocal, 1),
    "min": (MINIMUM_NUMBER, None, 2), "max": (MAXIMUM_NUMBER, None, 2), "neg": (np.negative, None, 1),
    "abs": (np.abs, None, 1), "cvt": (_same, None, 1),
})  # fmt: skip
"""For each opcode the rounded result, the distance of the exact one above it, and the number of operands."""


def _number(a: Fraction) -> Fraction:
    return a


def _exact_fma(a: Fraction, b: Fraction, c: Fraction) -> Fraction:
    return a * b + c


def _exact_reciprocal(a: Fraction) -> Fraction:
    return 1 / a


_EXACT: Mapping[str, Callable[..., Fraction]] = MappingProxyType({
    "add": Fraction.__add__, "sub": Fraction.__sub__, "mul": Fraction.__mul__, "fma": _exact_fma,
    "div": Fraction.__truediv__, "rcp": _exact_reciprocal, "sqrt": _number,
})  # fmt: skip
"""Exact results; a root is represented by its square."""
