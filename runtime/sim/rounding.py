# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rounding to narrow floating-point types once, to the nearest even number.

ml_dtypes converts double precision to bf16 by way of f32, which rounds twice. Rounding to odd on the way
makes the last rounding right (Boldo and Melquiond, Emulation of FMA and correctly rounded sums, 2008).
"""

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
    """The number next to the exact one whose last bit is odd, from the nearest one and what it lacks.

    `bits` is the integer type of the width of `nearest`. Exact numbers, infinities and NaN stay.
    """
    even = (nearest.view(bits) & 1) == 0
    inexact = even & np.isfinite(nearest) & (error != 0)
    infinity = np.array(np.inf, nearest.dtype)
    return np.where(inexact, np.nextafter(nearest, np.where(error > 0, infinity, -infinity)), nearest)
