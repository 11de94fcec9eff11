# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the check language asks of element types: which are floating-point, and how near two results must be."""

from typing import Any

import numpy as np
import numpy.typing as npt


def is_floating(dtype: np.dtype[Any]) -> bool:
    """Whether a type is floating-point, counting bfloat16 and the 8-bit floats, whose kind NumPy does not know."""
    return dtype.kind == "f" or dtype.name.startswith(("bfloat", "float"))


def widened(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The array in float64, or in int64 where it holds integers or truth values."""
    return array.astype(np.float64 if is_floating(array.dtype) else np.int64, copy=False)


TOLERANCES = {
    "float64": (1e-7, 1e-7),
    "float32": (1.3e-6, 1e-5),
    "float16": (1e-3, 1e-5),
    "bfloat16": (1.6e-2, 1e-5),
    "float8_e4m3fn": (0.125, 2**-9),
    "float8_e5m2": (0.25, 2**-16),
}
"""Relative and absolute tolerance of `~=` by element type: of 8-bit floats the distance to the next number, of the
others as `torch.testing.assert_close` has them."""

_EXACT = (0.0, 0.0)


def tolerance(left: np.dtype[Any], right: np.dtype[Any]) -> tuple[float, float]:
    """The relative and absolute tolerance of comparing two types: that of the coarser one; integers are exact."""
    return max(TOLERANCES.get(left.name, _EXACT), TOLERANCES.get(right.name, _EXACT))
