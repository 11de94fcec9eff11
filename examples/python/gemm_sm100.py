# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""D = A @ B^T on Blackwell (sm_100a) by the library's kernel: multiplications in tensor memory, by one block or by a
pair of blocks. No GPU of this kind has run it.

The kernel is in tilefold/kernels/sm100/gemm.py; docs/blackwell.md leads to it.

    python examples/python/gemm_sm100.py
    python examples/python/gemm_sm100.py --pair 2 --m 512 --n 256 --dtype e4m3
"""

import ml_dtypes
import numpy as np
from common import check, chosen, parser, place

from tilefold.kernels.sm100.gemm import Config, gemm

TYPES = {
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "tf32": np.float32, "e4m3": ml_dtypes.float8_e4m3fn, "s8": np.int8,
}  # fmt: skip


def main(arguments: list[str] | None = None) -> None:
    made = parser("D = A @ B^T on tensor cores of Blackwell", m=256, n=128, k=128, pair=1, columns=64)
    made.add_argument("--dtype", choices=TYPES, default="f16")
    options = made.parse_args(arguments)
    config = Config(8 * np.dtype(TYPES[options.dtype]).itemsize, options.columns, options.pair)
    if any(extent % each for extent, each in zip((options.m, options.n, options.k), config.tile, strict=True)):
        raise SystemExit(f"M, N and K are multiples of {', '.join(map(str, config.tile))}")
    device, type = chosen(options.device), TYPES[options.dtype]
    chance = np.random.default_rng(0)
    hA, hB = (chance.integers(-4, 5, (rows, options.k)).astype(type) for rows in (options.m, options.n))
    of_result = np.int32 if options.dtype == "s8" else np.float32
    A, B, D = place(device, hA, hB, np.empty((options.m, options.n), of_result))
    gemm(A, B, D, config, device)
    check("D", D, hA.astype(of_result) @ hB.astype(of_result).T)


if __name__ == "__main__":
    main()
