# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products by tilefold/kernels/sm90/gemm.py against NumPy's, on the simulator and the GPU: the operands, whose sums are
exact, in rows of any length, and in every type and order of memory.
"""

from typing import Any

import numpy as np
from ml_dtypes import bfloat16, float8_e4m3fn, float8_e5m2
from numpy.typing import NDArray

Array = NDArray[Any]
TYPES: tuple[tuple[Any, Any, str], ...] = (
    (np.float16, np.float16, "CC"), (bfloat16, bfloat16, "CC"), (np.float16, np.float32, "CF"),
    (bfloat16, np.float16, "FC"), (np.float16, np.float16, "FF"), (float8_e4m3fn, np.float16, "CC"),
    (float8_e5m2, bfloat16, "CC"), (np.int8, np.int32, "CC"), (np.uint8, np.int32, "CC"),
    (np.float32, np.float32, "CC"),
)  # fmt: skip
"""The type of A and B, that of D, and for A and B whether rows (C) or columns (F) are contiguous."""


def padded(shape: tuple[int, ...], dtype: Any, order: str = "C") -> Array:
    """An array of M x N elements, or of such a matrix for each layer, whose rows or columns begin at multiples of 16
    bytes.
    """
    m, n, *layers = shape
    unit = 16 // np.dtype(dtype).itemsize
    inner, outer = (n, m) if order == "C" else (m, n)
    whole = np.zeros((*layers, outer, -(-inner // unit) * unit), dtype)[..., :inner]
    placed = whole if order == "C" else whole.swapaxes(-1, -2)
    return placed.transpose(1, 2, 0) if layers else placed


def operands(m: int, n: int, k: int, types: tuple[Any, Any, str], *layers: int) -> tuple[Array, Array, Array]:
    """A and B of integers that are small enough for exact sums, and D, which begins as NaN or -1."""
    random = np.random.default_rng(m * n + k)
    found: list[Array] = []
    for rows, order in zip((m, n), types[2], strict=True):
        made = padded((rows, k, *layers), types[0], order)
        made[...] = random.integers(0 if types[0] is np.uint8 else -3, 4, made.shape).astype(types[0])
        found.append(made)
    D = padded((m, n, *layers), types[1])
    D[...] = -1 if np.dtype(types[1]).kind == "i" else np.nan
    return found[0], found[1], D


def product(A: Array, B: Array, D: Array) -> Array:
    """What D is to be."""
    many = A.ndim == 3
    wide = np.einsum("mkl,nkl->mnl" if many else "mk,nk->mn", A.astype(np.float32), B.astype(np.float32))
    return wide.astype(D.dtype)
