# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Conversions to floats that round toward zero or an infinity, or whose result is bounded (PTX ISA, cvt: rounding
modifiers, .ftz, .sat, .relu, .satfinite).

Numbers of at most 53 bits are rounded in double precision, which scales them exactly; integers of 64 bits are rounded
as integers.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from ....base.element_types import ELEMENT_TYPES
from ...engine import NumPyType, numpy_type
from ..values import Value
from .roundings import flush

_where: Callable[..., Value] = np.where


class _Format(NamedTuple):
    """A float: its bits without the hidden one, its least exponent, and the type that holds it."""

    fraction: int
    least: int
    dtype: NumPyType

    @property
    def greatest(self) -> float:
        """The greatest number."""
        return (2.0 - 2.0**-self.fraction) * 2.0 ** (1 - self.least)


_FORMATS: Mapping[str, _Format] = MappingProxyType({
    element.ptx: _Format(element.fraction, 2 - 2 ** (element.exponent - 1), numpy_type(element))
    for element in ELEMENT_TYPES
    if element.kind == "float" and element.bits >= 16
})  # fmt: skip
_INTEGERS: Mapping[str, NumPyType] = MappingProxyType(
    {f"{letter}{bits}": np.dtype(f"{kind}{bits // 8}") for letter, kind in ("si", "uu") for bits in (8, 16, 32, 64)}
)


def _away(x: Value) -> Value:
    """The nearest integer; of two, that farther from zero."""
    return np.copysign(np.floor(np.abs(x) + 0.5), x)


_ROUNDINGS: Mapping[str, Callable[[Value], Value]] = MappingProxyType(
    {"rn": np.rint, "rz": np.trunc, "rm": np.floor, "rp": np.ceil, "rna": _away}
)
_WITH_INFINITY: Mapping[str, tuple[bool, bool]] = MappingProxyType({
    "rn": (True, True), "rna": (True, True), "rz": (False, False), "rm": (False, True), "rp": (True, False),
})  # fmt: skip
"""Whether too large numbers above and below zero become infinite."""
_NAN = MappingProxyType({2: 0x7FFF, 4: 0x7FFFFFFF, 8: 0x7FFFFFFFFFFFFFFF})
_BOUNDS = frozenset(("ftz", "sat", "relu", "satfinite"))


def conversion(word: str) -> tuple[Callable[[Value], Value], NumPyType] | None:
    """The function of a conversion to a float, `cvt.rz.f16.f32`, and NumPy's type of its operand; None for another."""
    opcode, *words = word.split(".")
    if opcode != "cvt" or len(words) < 2 or words[-2] not in _FORMATS or words[-2:] == ["f32", "f32"]:
        return None
    *modifiers, target, source = words
    mode = next((word for word in modifiers if word in _ROUNDINGS), "rn")
    bounds = set(modifiers) - {mode}
    if not bounds <= _BOUNDS or (source not in _INTEGERS and source not in _FORMATS):
        return None
    to, dtype = _FORMATS[target], _INTEGERS.get(source) or _FORMATS[source].dtype

    def run(given: object) -> Value:
        value = np.asarray(given, dtype)
        if value.dtype.kind in "iu":
            exact = _integer(value, to.fraction + 1, mode)
        else:
            exact = value.astype(np.float64)
            if "ftz" in bounds and source == "f32":
                exact = flush(exact)
        value = _bounded(_rounded(exact, to, mode, "satfinite" in bounds), bounds)
        if "ftz" in bounds and target == "f32":
            value = flush(value)
        made: Value = value.astype(to.dtype)
        bits = made.view(f"u{to.dtype.itemsize}")
        return _where(np.isnan(value), bits.dtype.type(_NAN[to.dtype.itemsize]), bits).view(to.dtype)

    return run, dtype


def _rounded(x: Value, to: _Format, mode: str, is_finite: bool) -> Value:
    """Numbers of double precision rounded to those of a format."""
    if to.fraction == 52:
        return x
    _, exponent = np.frexp(x)
    unit = np.maximum(exponent - 1, to.least) - to.fraction
    value: Value = np.ldexp(_ROUNDINGS[mode](np.ldexp(x, -unit)), unit)
    above, below = (False, False) if is_finite else _WITH_INFINITY[mode]
    most, least = (np.inf if above else to.greatest), (-np.inf if below else -to.greatest)
    value = _where(value > to.greatest, most, _where(value < -to.greatest, least, value))
    return value if is_finite else _where(np.isfinite(x), value, x)


def _bounded(value: Value, bounds: set[str]) -> Value:
    if "sat" in bounds:
        return np.minimum(np.fmax(value, 0.0), 1.0)  # NaN becomes 0
    return _where(value < 0, 0.0, value) + 0.0 if "relu" in bounds else value


def _integer(x: Value, kept: int, mode: str) -> Value:
    """Integers rounded to this many bits, in double precision, which holds these."""
    negative: Value = x < 0
    size: Value = _where(negative, -x.astype(np.uint64), x.astype(np.uint64)).astype(np.uint64)
    upper: Value = size >> np.uint64(32)
    length: Value = _where(upper > 0, 32 + _length(upper), _length(size & np.uint64(0xFFFFFFFF)))
    lost: Value = np.maximum(length - kept, 0).astype(np.uint64)
    whole: Value = size >> lost
    rest: Value = size - (whole << lost)
    half: Value = (np.uint64(1) << lost) >> np.uint64(1)
    match mode:
        case "rn":
            up: Value = (lost > 0) & ((rest > half) | ((rest == half) & (whole & np.uint64(1) == 1)))
        case "rm" | "rp":
            up = (rest > 0) & (negative if mode == "rm" else ~negative)
        case _:
            up = np.zeros_like(negative)
    value: Value = np.ldexp((whole + up.astype(np.uint64)).astype(np.float64), lost.astype(np.int32))
    return _where(negative, -value, value)


def _length(x: Value) -> Value:
    """The bits of integers below 2**32."""
    return np.frexp(x.astype(np.float64))[1]
