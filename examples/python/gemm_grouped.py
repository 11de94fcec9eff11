# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""D_g = A_g @ B_g^T on Hopper for groups of rows, whose sizes the GPU reads: masked, and one after the other.

The kernel is in tilefold/kernels/sm90/gemm_grouped.py.

    python examples/python/gemm_grouped.py
    python examples/python/gemm_grouped.py --device cuda --groups 8 --m 4096 --n 4096 --k 7168 --blocks 132
"""

import numpy as np
from common import check, chosen, normal, parser, place

from tilefold.kernels.sm90.gemm_grouped import DEFAULT, gemm_grouped


def main(arguments: list[str] | None = None) -> None:
    made = parser("D_g = A_g @ B_g^T on Hopper", groups=3, m=256, n=256, k=128, blocks=2)
    options = made.parse_args(arguments)
    device = chosen(options.device)
    shape = options.groups, options.m
    high = DEFAULT.m
    counts = [int(count) for count in np.random.default_rng(0).integers(0, int(options.m) + 1, int(options.groups))]
    hA, hB = normal(0, (*shape, options.k)), normal(1, (options.groups, options.n, options.k))
    expected = hA.astype(np.float32) @ hB.astype(np.float32).swapaxes(1, 2)
    A, B, rows, D = place(device, hA, hB, np.array(counts, np.int32), np.empty((*shape, options.n), np.float16))
    gemm_grouped(A, B, rows, D, device=device, blocks=options.blocks)
    for group, count in enumerate(counts):
        check(f"masked_{group}", D[group, :count], expected[group, :count])

    # the same groups, one after the other
    kept = [group[: -(-count // high) * high] for group, count in zip(hA, counts, strict=True)]
    behind = np.concatenate([np.pad(group, ((0, -len(group) % high), (0, 0))) for group in kept])
    packed, out = place(device, behind, np.empty((len(behind), options.n), np.float16))
    gemm_grouped(packed, B, rows, out, device=device, blocks=options.blocks)
    first = 0
    for group, count in enumerate(counts):
        check(f"contiguous_{group}", out[first : first + count], expected[group, :count])
        first += -(-count // high) * high


if __name__ == "__main__":
    main()
