# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""D = A @ B^T on Hopper for fp8 with scales of blocks in f32, one for each 128 elements of a row of A and each 128 x
128 of B.

The kernel is in tilefold/kernels/sm90/gemm_scaled.py.

    python examples/python/gemm_fp8_scaled.py
    python examples/python/gemm_fp8_scaled.py --device cuda --m 4096 --n 7168 --k 4096 --blocks 132
"""

import numpy as np
from common import check, chosen, normal, parser, place
from ml_dtypes import float8_e4m3fn

from tilefold.kernels.sm90.gemm_scaled import BLOCK, gemm_fp8_scaled


def scaled(seed: int, rows: int, k: int, height: int) -> tuple[np.ndarray, np.ndarray]:
    """Normally distributed numbers in fp8, with a scale for each `height` rows and 128 columns."""
    scales = np.random.default_rng(seed + 9).uniform(0.5, 2, (-(-rows // height), k // BLOCK)).astype(np.float32)
    return normal(seed, (rows, k), float8_e4m3fn), scales


def reference(A: np.ndarray, scales: np.ndarray, height: int) -> np.ndarray:
    """The numbers that A and its scales stand for."""
    whole = scales.repeat(height, 0)[: A.shape[0]].repeat(BLOCK, 1)
    return A.astype(np.float32) * whole


def main(arguments: list[str] | None = None) -> None:
    made = parser("D = A @ B^T in fp8 with scales of blocks, on Hopper", m=256, n=256, k=256, blocks=2)
    options = made.parse_args(arguments)
    device = chosen(options.device)
    hA, ha = scaled(0, options.m, options.k, 1)
    hB, hb = scaled(1, options.n, options.k, BLOCK)
    A, B, a, b, D = place(device, hA, hB, ha, hb, np.empty((options.m, options.n), np.float16))
    gemm_fp8_scaled(A, B, a, b, D, device=device, blocks=options.blocks)
    inexact = 3e-2 * options.k**0.5  # tensor cores add 8-bit products to 14 bits
    check("D", D, reference(hA, ha, 1) @ reference(hB, hb, BLOCK).T, atol=1e-2 + inexact)


if __name__ == "__main__":
    main()
