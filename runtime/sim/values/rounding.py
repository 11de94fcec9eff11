# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Results rounded once, to the nearest even number: narrow floating-point types, and fused multiply-adds.

ml_dtypes converts double precision to bf16 by way of f32, which rounds twice. Rounding to odd on the way
makes the last rounding right (Boldo and Melquiond, Emulation of FMA and correctly rounded sums, 2008).
"""

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray


def narrow(value: Any, dtype: np.dtype[Any]) -> Any:
    """Double-precision numbers as `dtype`: an array of the same shape, or a scalar for no dimensions."""
    value = np.asarray(value, np.float64)
    if dtype.kind == "f":
        return value.astype(dtype)[()]
    single = value.astype(np.float32)
    difference = value - single.astype(np.float64)
    return to_odd(single, difference, np.dtype(np.int32)).astype(dtype)[()]


def to_odd(nearest: NDArray[Any], error: NDArray[Any], bits: np.dtype[Any]) -> NDArray[Any]:
    """The number next to the exact one whose last bit is odd, from the nearest one and its error.

    `bits` is the integer type of the width of `nearest`. Exact numbers, infinities and NaN stay.
    """
    even = (nearest.view(bits) & 1) == 0
    inexact = even & np.isfinite(nearest) & (error != 0)
    infinity = np.array(np.inf, nearest.dtype)
    return np.where(inexact, np.nextafter(nearest, np.where(error > 0, infinity, -infinity)), nearest)


def fused_multiply_add(a: Any, b: Any, c: Any, dtype: np.dtype[Any]) -> Any:
    """a * b + c, rounded once to `dtype`, the type of all three."""
    if dtype.itemsize == 8:
        return np.vectorize(_fma_exact, otypes=[np.float64])(a, b, c)[()]
    # The product is exact, since the significands have at most 24 bits each.
    product = np.asarray(a, np.float64) * np.asarray(b, np.float64)
    addend = np.asarray(c, np.float64)
    total = np.asarray(product + addend)
    part = total - product
    error = (product - (total - part)) + (addend - part)
    return narrow(to_odd(total, error, np.dtype(np.int64)), dtype)


def _fma_exact(a: float, b: float, c: float) -> float:
    if not (np.isfinite(a) and np.isfinite(b) and np.isfinite(c)):
        return a * b + c
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if exact == 0:
        return a * b + c  # keeps the sign of a zero
    try:
        return float(exact)
    except OverflowError:
        return float("inf") if exact > 0 else float("-inf")


def round_to_tf32(x: Any) -> Any:
    """An f32 rounded at bit 13 of its significand, half away from zero (PTX ISA, cvt.rna); infinities and NaN stay."""
    bits = np.asarray(x, np.float32).view(np.uint32)
    rounded = (bits + np.uint32(0x1000)) & np.uint32(0xFFFFE000)
    return np.where((bits & 0x7F800000) == 0x7F800000, bits, rounded).astype(np.uint32).view(np.float32)[()]
