# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Facts of element types for the check language: which are floating-point, and how near two results must be."""

import numpy as np

from ...base.element_types import ELEMENT_TYPES
from ..engine import NumPyArray, NumPyType, numpy_type

_FLOATS = frozenset(numpy_type(element) for element in ELEMENT_TYPES if element.exponent)


def is_floating(dtype: NumPyType) -> bool:
    """Whether a type is floating-point, counting bfloat16 and floats of 8 bits and less, whose kind NumPy does not
    know, and the objects that are exact numbers.
    """
    return dtype.kind in "fO" or dtype in _FLOATS


def widen(array: NumPyArray) -> NumPyArray:
    """The array in float64, or in int64 where it holds integers or truth values."""
    return array.astype(np.float64 if is_floating(array.dtype) else np.int64, copy=False)


TOLERANCES = {numpy_type(element): element.tolerance for element in ELEMENT_TYPES if not element.stored}
"""Relative and absolute tolerance of `~=` by element type."""

_EXACT = (0.0, 0.0)


def tolerance(left: NumPyType, right: NumPyType) -> tuple[float, float]:
    """The relative and absolute tolerance of comparing two types: that of the coarser one; integers are exact."""
    return max(TOLERANCES.get(left, _EXACT), TOLERANCES.get(right, _EXACT))
