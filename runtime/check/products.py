# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products of matrices, in float64 or, for integers, exactly modulo 2**64."""

from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from .dtypes import widen
from .limits import SMALLER_RESULT, CostError, UnfitError, check_elements, infer_common_shape

MAX_PRODUCTS = 2**40
"""Most multiplications that one matrix product may take (8192 cubed is half of it)."""

_EXACT_IN_DOUBLE = 2**53


def product(left: npt.NDArray[Any], right: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """`left @ right` over the last two modes; the modes before them are a batch, and broadcast as NumPy's do.

    UnfitError for shapes that do not fit, CostError for a product that is too large.
    """
    if left.ndim < 2 or right.ndim < 2:
        raise UnfitError(
            f"'@' multiplies two matrices, or batches of them, not arrays of shape {left.shape} and {right.shape}"
        )
    (m, k), (rows, n) = left.shape[-2:], right.shape[-2:]
    if k != rows:
        raise UnfitError(
            f"'@' needs as many columns on the left as rows on the right, not {left.shape} and {right.shape}"
        )
    batch = infer_common_shape(left.shape[:-2], right.shape[:-2])
    check_elements((*batch, m, n))
    if prod(batch) * m * n * k > MAX_PRODUCTS:
        raise CostError(
            f"a matrix product of {'x'.join(map(str, (*batch, m, n, k)))} would take too long; at most "
            f"{MAX_PRODUCTS} products are accepted",
            SMALLER_RESULT,
        )
    left, right = widen(left), widen(right)
    if left.dtype == right.dtype == np.int64 and k * _largest(left) * _largest(right) < _EXACT_IN_DOUBLE:
        # no sum can be rounded then, and NumPy multiplies matrices of float64 by BLAS, of integers by a plain loop
        return np.matmul(left.astype(np.float64), right.astype(np.float64)).astype(np.int64)
    return np.matmul(left, right)


def _largest(array: npt.NDArray[Any]) -> int:
    return max(abs(int(array.max())), abs(int(array.min()))) if array.size else 0
