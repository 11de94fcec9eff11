# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""D = A @ B^T on Hopper for few rows of A, as in decoding: blocks of a cluster share K.

The kernel is in tilefold/kernels/sm90/gemm_skinny.py.

    python examples/python/gemm_skinny.py
    python examples/python/gemm_skinny.py --device cuda --m 16 --n 4096 --k 4096
"""

import numpy as np
from common import check, chosen, normal, parser, place

from tilefold.kernels.sm90.gemm_skinny import skinny_gemm


def main(arguments: list[str] | None = None) -> None:
    made = parser("D = A @ B^T for few rows of A, on tensor cores of Hopper", m=16, n=256, k=512)
    options = made.parse_args(arguments)
    device = chosen(options.device)
    hA, hB = normal(0, (options.m, options.k)), normal(1, (options.n, options.k))
    A, B, D = place(device, hA, hB, np.empty((options.m, options.n), np.float16))
    skinny_gemm(A, B, D, device=device)
    check("D", D, hA.astype(np.float32) @ hB.astype(np.float32).T)


if __name__ == "__main__":
    main()
