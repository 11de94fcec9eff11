# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""D = A @ B^T on Hopper by the library's kernel: TMA copies, warps that load and warpgroups that multiply.

The kernel is in tilefold/kernels/sm90/gemm.py; docs/hopper.md leads to it.

    python examples/python/gemm_sm90.py
    python examples/python/gemm_sm90.py --device cuda --m 4096 --n 4096 --k 4096
"""

import numpy as np
from common import check, chosen, normal, parser, place

from tilefold.kernels.sm90.gemm import gemm


def main(arguments: list[str] | None = None) -> None:
    made = parser("D = A @ B^T on tensor cores of Hopper", m=256, n=256, k=128, blocks=2)
    options = made.parse_args(arguments)
    device = chosen(options.device)
    hA, hB = normal(0, (options.m, options.k)), normal(1, (options.n, options.k))
    A, B, D = place(device, hA, hB, np.empty((options.m, options.n), np.float16))
    gemm(A, B, D, device=device, blocks=options.blocks)
    check("D", D, hA.astype(np.float32) @ hB.astype(np.float32).T)


if __name__ == "__main__":
    main()
