# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The larger and the smaller of two Float32, with the modifiers of the instructions."""

from ..scalars.dtypes import Float32, Int32
from ..scalars.operators import Operand
from ..scalars.values import convert, is_scalar
from ..tensors.fragments import combined, unary_of
from . import math
from .bits import bitcast
from .math import where


def fmax(a: object, b: object, *, abs: bool = False, nan: bool = False, ftz: bool = False) -> Operand:
    """The larger of two Float32. Beside NaN the result is the number, or NaN with `nan`. With `abs` the larger
    magnitude, whose sign bit is the exclusive or of both, also of zeros and NaN; with `ftz` subnormal numbers are zeros
    of their sign (PTX ISA, max: `.xorsign.abs`).
    """
    return _extreme("max", a, b, abs, nan, ftz)


def fmin(a: object, b: object, *, abs: bool = False, nan: bool = False, ftz: bool = False) -> Operand:
    """The smaller of two Float32, as `fmax` (PTX ISA, min)."""
    return _extreme("min", a, b, abs, nan, ftz)


def maximum(a: object, b: object, ftz: bool = False) -> Operand:
    """The larger of two; beside NaN the number. With `ftz`, subnormal Float32 are zeros."""
    return fmax(a, b, ftz=True) if ftz else math.maximum(a, b)


def minimum(a: object, b: object, ftz: bool = False) -> Operand:
    """The smaller of two, as `maximum`."""
    return fmin(a, b, ftz=True) if ftz else math.minimum(a, b)


def _extreme(kind: str, a: Operand, b: Operand, magnitudes: bool, keeps_nan: bool, flushes: bool) -> Operand:
    x, y = (convert(given, Float32) if is_scalar(given) else given for given in (a, b))
    if not (magnitudes or keeps_nan or flushes):
        return combined(kind, x, y)
    if flushes:
        x, y = (where(unary_of("abs", given) < _NORMAL, given * 0.0, given) for given in (x, y))
    made = combined(kind, *(unary_of("abs", given) for given in (x, y))) if magnitudes else combined(kind, x, y)
    if magnitudes:
        negative = (bitcast(x, Int32) ^ bitcast(y, Int32)) < 0
        made = where(negative & (made == made), -made, made)
    return where((x != x) | (y != y), x + y, made) if keeps_nan else made


_NORMAL = 2.0**-126
"""The least Float32 above zero that is not subnormal."""
