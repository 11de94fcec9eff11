# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""B = A / sqrt(mean(A * A) + eps) * W for each row, in f16 with arithmetic in f32: every element is read once.

python examples/python/rmsnorm.py
python examples/python/rmsnorm.py --device cuda --m 16384 --n 8192 --rows 1 --group 256
"""

import numpy as np
from common import Array, check, chosen, normal, parser, place
from rows import DEFAULT, Config, RowTile, dot, every_warp

from tilefold import cute


@cute.kernel
def rmsnorm_kernel(
    mA: cute.Tensor, mW: cute.Tensor, mB: cute.Tensor, eps: cute.Float32, config: cute.Constexpr[Config]
):
    block, _, _ = cute.arch.block_idx()
    columns = mA.shape[1]
    tile = RowTile(config, columns)
    part = tile.load(mA, block, 0.0)
    every_row = cute.make_layout((config.rows, columns), stride=(0, 1))
    weights = tile.load(cute.make_tensor(mW.iterator, every_row), 0, 0.0)
    x = part.load().to(cute.Float32)
    squares = cute.arch.warp_reduction(dot(x, x), cute.ReductionOp.ADD)
    if config.warps > 1:
        squares = every_warp([squares], config)[0].reduce(cute.ReductionOp.ADD)
    scale = cute.rsqrt(squares * (1.0 / columns) + eps)
    part.store((x * scale * weights.load().to(cute.Float32)).to(cute.Float16))
    tile.store(part, mB, block)


def rmsnorm(A: Array, W: Array, B: Array, eps: float = 1e-5, config: Config = DEFAULT, device: str = "auto") -> None:
    """The root-mean-square norm along the last index; the number of rows is a multiple of `config.rows`."""
    call = rmsnorm_kernel(A, W, B, eps, config)
    call.launch(grid=(A.shape[0] // config.rows, 1, 1), block=(config.threads, 1, 1), device=device)


def main(arguments: list[str] | None = None) -> None:
    options = parser("root-mean-square norm of each row", m=8, n=1000, rows=2, group=64).parse_args(arguments)
    device = chosen(options.device)
    hA, hW = normal(0, (options.m, options.n)), normal(1, (options.n,))
    A, W, B = place(device, hA, hW, np.empty_like(hA))
    rmsnorm(A, W, B, config=Config(options.rows, options.group), device=device)
    x = hA.astype(np.float32)
    check("B", B, x / np.sqrt((x * x).mean(axis=1, keepdims=True) + 1e-5) * hW.astype(np.float32))


if __name__ == "__main__":
    main()
