# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""B = softmax(A) of each row, in f16 with arithmetic in f32: every element is read once and written once.

python examples/python/softmax.py
python examples/python/softmax.py --device cuda --m 16384 --n 8192
"""

import numpy as np
from common import Array, check, chosen, normal, parser, place
from rows import DEFAULT, Config, RowTile, dot, every_warp

from tilefold import cute

LOG2_E = 1.4426950408889634
LOWEST = -1e30
"""A finite maximum to begin with, so that nothing is subtracted from itself where all is -inf."""


@cute.kernel
def softmax_kernel(mA: cute.Tensor, mB: cute.Tensor, config: cute.Constexpr[Config]):
    block, _, _ = cute.arch.block_idx()
    tile = RowTile(config, mA.shape[1])
    part = tile.load(mA, block, float("-inf"))
    x = part.load().to(cute.Float32) * LOG2_E  # so that exponentials are powers of 2
    largest = cute.arch.warp_reduction(x.reduce(cute.ReductionOp.MAX, LOWEST), cute.ReductionOp.MAX)
    power = cute.arch.approx("ex2", x - largest, ftz=True)
    total = cute.arch.warp_reduction(power.reduce(cute.ReductionOp.ADD), cute.ReductionOp.ADD)
    share = 1.0
    if config.warps > 1:  # the row's, from the pairs of all its warps
        maxima, totals = every_warp([largest, total], config)
        row_largest = maxima.reduce(cute.ReductionOp.MAX, LOWEST)
        total = dot(totals, cute.arch.approx("ex2", maxima - row_largest, ftz=True))
        share = cute.arch.approx("ex2", largest - row_largest, ftz=True)
    part.store((power * (share * cute.arch.approx("rcp", total))).to(cute.Float16))
    tile.store(part, mB, block)


def softmax(A: Array, B: Array, config: Config = DEFAULT, device: str = "auto") -> None:
    """B = softmax(A) along the last index; the number of rows is a multiple of `config.rows`."""
    call = softmax_kernel(A, B, config)
    call.launch(grid=(A.shape[0] // config.rows, 1, 1), block=(config.threads, 1, 1), device=device)


def main(arguments: list[str] | None = None) -> None:
    options = parser("softmax of each row", m=8, n=1000, rows=2, group=64).parse_args(arguments)
    device = chosen(options.device)
    host = normal(0, (options.m, options.n)) * np.float16(4)
    A, B = place(device, host, np.empty_like(host))
    softmax(A, B, Config(options.rows, options.group), device)
    power = np.exp(host.astype(np.float32) - host.max(axis=1, keepdims=True))
    check("B", B, power / power.sum(axis=1, keepdims=True), atol=1e-6)


if __name__ == "__main__":
    main()
