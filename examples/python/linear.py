# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""D = gelu(A @ W^T + bias): a linear layer whose bias and activation are part of the GEMM's epilogue.

The kernel is that of gemm.py. The activation is a function of fragments, which Python gives it as a constant: another
function makes another kernel.

    python examples/python/linear.py
    python examples/python/linear.py --device cuda --m 4096 --n 4096 --k 4096
"""

import numpy as np
from common import check, chosen, normal, parser, place
from gemm import gemm

from tilefold import cute


def gelu(x: cute.TensorSSA) -> cute.TensorSSA:
    """GELU in its tanh form: x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x ** 3)))."""
    half = x * 0.5
    return half + half * cute.tanh(x * (0.7978845608 + 0.0356774081 * (x * x)), fastmath=True)


def main(arguments: list[str] | None = None) -> None:
    options = parser("gelu(A @ W^T + bias)", m=128, n=256, k=128).parse_args(arguments)
    device = chosen(options.device)
    hA, hW = normal(0, (options.m, options.k)), normal(1, (options.n, options.k))
    h_bias = normal(2, (options.n,), np.float32)
    A, W, bias, D = place(device, hA, hW, h_bias, np.empty((options.m, options.n), np.float16))
    gemm(A, W, D, bias, gelu, device=device)
    x = hA.astype(np.float32) @ hW.astype(np.float32).T + h_bias
    check("D", D, x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))), atol=1e-2)


if __name__ == "__main__":
    main()
