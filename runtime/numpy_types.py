# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Element types as NumPy types and ml_dtypes, and views of arrays of either."""

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from ..base.element_types import ElementType


def numpy_type(element: ElementType) -> np.dtype[Any]:
    """The type of an array's elements, those narrower than a byte taking one each."""
    return np.dtype(element.library if element.in_numpy else getattr(ml_dtypes, element.library))


def strided_view(array: NDArray[Any], shape: Sequence[int], steps: Sequence[int]) -> NDArray[Any]:
    """The elements from the first one of an array on, in another shape, with strides in bytes.

    NumPy's `as_strided` asks for the type by its name, and finds none for `float8_e5m2` of ml_dtypes.
    """
    if array.dtype.hasobject:  # exact numbers
        return np.lib.stride_tricks.as_strided(array, shape, steps)
    raw = array.view(f"V{array.itemsize}")
    return np.lib.stride_tricks.as_strided(raw, shape, steps).view(array.dtype)
