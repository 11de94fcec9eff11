# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The unit for special functions of NVIDIA's GPUs (MUFU), bit for bit: f32 to f32.

It interpolates: high bits of the significand choose a row of a table, and the low bits x give c0 + c1 * x + c2 * x**2
in fixed point, with a square that lacks its low partial products (Oberman and Siu, "A High-Performance Area-Efficient
Multifunction Interpolator", 2005). Shifts, roundings and the square are those that envytools describes for the first
GPUs with CUDA (github.com/envytools/envytools, nvhw/sfu). The integers of `function_unit.csv` come from the results of
an H100, which no others give. sqrt and tanh, which those first GPUs lacked, work alike.

Subnormal operands and results are 0 of their sign, except in tanh. NaN is 0x7fffffff.
"""

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ...engine import NumPyArray

Words: TypeAlias = NDArray[np.int64]
Singles: TypeAlias = NDArray[np.float32]

_ONE, _INFINITE, _NAN, _SIGN = 1 << 23, 0xFF << 23, 0x7FFFFFFF, 1 << 31
_LOW = 17
"""The bits of x in a sum."""
_FORMS: Mapping[str, tuple[int, int, int]] = MappingProxyType({
    "rcp": (14, 0x8FCE, 2), "rsqrt": (14, 0x7FFF, 4), "sqrt": (14, 0x3FFF, 2), "ex2": (13, 0x77E2, 1),
    "lg2": (12, 0x3345, 2), "sin": (11, 0, 1), "tanh": (13, 0, 1),
})  # fmt: skip
"""By function: the shift of c0, the addend that rounds a sum, and the factor of c2."""
_TURNS = np.float64(np.float32(0.15915494))
"""1 / (2 pi), by which an instruction multiplies the operand of sin and cos, rounded toward zero."""
_TANH_ROWS = ((-8, 0), (-7, 0), (-6, 0), (-5, 1), (-4, 1), (-3, 2), (-2, 2), (-1, 2), (0, 3), (1, 4), (2, 3))
"""Exponents of operands of tanh, and how many bits of the significand choose the row."""


@cache
def _tables() -> Mapping[str, tuple[Words, Words, Words]]:
    """c0, c1 and c2 of each row, by function, shifted to one scale; c0 with the addend that rounds."""
    rows: dict[str, list[list[int]]] = {name: [] for name in _FORMS}
    for line in Path(__file__).with_suffix(".csv").read_text(encoding="utf-8").splitlines():
        name, *numbers = line.split(",")
        rows[name].append([int(number) for number in numbers])
    tables: dict[str, tuple[Words, Words, Words]] = {}
    for name, (shift, addend, factor) in _FORMS.items():
        c0, c1, c2 = np.array(rows[name], np.int64).T
        tables[name] = (c0 << shift) + addend, c1.copy(), c2 * factor
    return tables


@cache
def _squares() -> Words:
    """x**2 / 2**19 of each x, as the unit computes it: each partial product loses the bits below 2**18."""
    x, total = np.arange(1 << _LOW), np.zeros(1 << _LOW, np.int64)
    for bit in range(_LOW):
        total += (x >> 18 - bit) * (x >> bit & 1)
    return total >> 1


def _interpolated(name: str, row: Words, x: Words) -> Words:
    c0, c1, c2 = _tables()[name]
    return c0[row] + c1[row] * x + c2[row] * _squares()[x]


def _truncated(value: NumPyArray) -> NDArray[np.float64]:
    """Numbers that f32 has, toward zero."""
    return (value.view(np.int64) & -1 << 29).view(np.float64)


def _finite(bits: Words, exponent: Words, significand: Words) -> Words:
    """A number from its biased exponent and 24 bits, which may be 2**24; too small ones are 0."""
    made = (exponent << 23) + significand - _ONE
    return np.where(made < _ONE, 0, made) | bits & _SIGN


def _reciprocal(bits: Words) -> Words:
    exponent, fraction = bits >> 23 & 0xFF, bits & _ONE - 1
    total = _interpolated("rcp", fraction >> 16, (fraction & 0xFFFF) << 1)
    made = _finite(bits, 253 - exponent, total >> 16)
    made = np.where(exponent == 0, _INFINITE | bits & _SIGN, made)
    return np.where(exponent == 0xFF, bits & _SIGN, made)


def _halved(bits: Words) -> tuple[Words, Words]:
    """Half of the exponent, and the significand without its leading bit but with the exponent's last."""
    exponent = (bits >> 23 & 0xFF) - 127
    return exponent >> 1, bits & _ONE - 1 | (exponent & 1) << 23


def _of_negative(bits: Words, zero: Words | int, made: Words) -> Words:
    """Roots and logarithms: those of zero, and NaN for other negative numbers."""
    return np.where(bits & _INFINITE == 0, zero, np.where(bits & _SIGN != 0, _NAN, made))


def _reciprocal_root(bits: Words) -> Words:
    exponent, fraction = _halved(bits)
    total = _interpolated("rsqrt", fraction >> _LOW, fraction & (1 << _LOW) - 1)
    made = _finite(bits, 126 - exponent, np.where(fraction == 0, 2 * _ONE, total >> 16))
    made = np.where(bits == _INFINITE, 0, made)
    return _of_negative(bits, _INFINITE | bits & _SIGN, made)


def _root(bits: Words) -> Words:
    exponent, fraction = _halved(bits)
    total = _interpolated("sqrt", fraction >> _LOW, fraction & (1 << _LOW) - 1)
    made = np.where(bits == _INFINITE, _INFINITE, _finite(bits, 127 + exponent, total >> 17))
    return _of_negative(bits, bits & _SIGN, made)


def _logarithm(bits: Words) -> Words:
    exponent, fraction = (bits >> 23) - 127, bits & _ONE - 1
    total = _interpolated("lg2", fraction >> _LOW, fraction & (1 << _LOW) - 1) >> 2
    total = np.where(bits == 127 << 23, 0, total + (exponent << 36))
    size = np.where(total < 0, ~total, total) * 2.0**-36
    made = _bits(np.where(total < 0, -1.0, 1.0) * _truncated(size))
    return _of_negative(bits, _INFINITE | _SIGN, np.where(bits == _INFINITE, _INFINITE, made))


def _power(bits: Words) -> Words:
    size = np.minimum(np.abs(_floats(bits)) * 2.0**23, 2.0**31).astype(np.int64)
    fixed = np.where(bits & _SIGN == 0, size, np.where(size & _ONE - 1 == 0, -size, ~size))
    total = _interpolated("ex2", fixed >> _LOW & 63, fixed & (1 << _LOW) - 1)
    return np.minimum(_finite(bits & 0, 127 + (fixed >> 23), total >> 15), _INFINITE)


def _circular(bits: Words, quarters: int) -> Words:
    """The sine, `quarters` of a turn further."""
    turns = _truncated(np.abs(_floats(bits)) * _TURNS)
    fixed = np.where(turns < 2.0**23, turns * 2.0**25, 0.0).astype(np.int64)
    quadrant = (fixed >> 23) + quarters
    fraction = np.where(quadrant & 1, ~fixed, fixed) & _ONE - 1
    total = _interpolated("sin", fraction >> _LOW, fraction & (1 << _LOW) - 1)
    sign = (quadrant & 2) << 30 ^ (0 if quarters else bits & _SIGN)
    return np.where(bits & _INFINITE == _INFINITE, _NAN, _bits(_truncated(total * 2.0**-37)) | sign)


def _sine(bits: Words) -> Words:
    return _circular(bits, 0)


def _cosine(bits: Words) -> Words:
    return _circular(bits, 1)


def _tangent(bits: Words) -> Words:
    """tanh: the identity below 2**-8, and 1 from 8."""
    first = [0]
    for _, chosen in _TANH_ROWS:
        first.append(first[-1] + (1 << chosen))
    exponent = (bits >> 23 & 0xFF) - 127
    at = np.clip(exponent + 8, 0, len(_TANH_ROWS) - 1)
    chosen = np.array([count for _, count in _TANH_ROWS])[at]
    fraction = bits & _ONE - 1
    row = np.array(first)[at] + (fraction >> 23 - chosen)
    total = _interpolated("tanh", row, fraction >> 6 - chosen & (1 << _LOW) - 1)
    made = _bits(_truncated(np.minimum(total * 2.0**-39, 1.0)))
    made = np.where(exponent > 2, 127 << 23, made)
    return np.where(exponent < -8, bits, made | bits & _SIGN)


def _floats(bits: Words) -> NDArray[np.float64]:
    """Numbers by their bits; NaN and infinities are some large number."""
    return np.minimum(bits & _NAN, _INFINITE - 1).astype(np.uint32).view(np.float32).astype(np.float64)


def _bits(value: NDArray[np.float64]) -> Words:
    return value.astype(np.float32).view(np.uint32).astype(np.int64)


FUNCTIONS: Mapping[str, Callable[[Words], Words]] = MappingProxyType({
    "ex2": _power, "lg2": _logarithm, "rcp": _reciprocal, "rsqrt": _reciprocal_root, "sqrt": _root,
    "sin": _sine, "cos": _cosine, "tanh": _tangent,
})  # fmt: skip
"""On the bits of f32, by PTX's names. Operands are no NaN."""


def function_unit(name: str, x: object) -> Singles:
    """A function of an array of f32."""
    bits = np.asarray(x, np.float32).view(np.uint32).astype(np.int64)
    made = np.where(bits & _NAN > _INFINITE, _NAN, FUNCTIONS[name](bits))
    return made.astype(np.uint32).view(np.float32)
