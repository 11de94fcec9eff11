# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Element types as NumPy types and ml_dtypes."""

from typing import Any

import ml_dtypes
import numpy as np

from ..base.element_types import ElementType


def numpy_type(element: ElementType) -> np.dtype[Any]:
    """The type of an array's elements, those narrower than a byte taking one each."""
    return np.dtype(element.library if element.in_numpy else getattr(ml_dtypes, element.library))
