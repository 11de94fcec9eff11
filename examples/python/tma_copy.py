# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""B = A by TMA copies (sm_90): one thread of each block has a tile loaded to shared memory and stored again.

python examples/python/tma_copy.py
python examples/python/tma_copy.py --device cuda --m 8192 --n 8192
"""

from dataclasses import dataclass

import numpy as np
from common import Array, check, chosen, normal, parser, place

from tilefold import cute
from tilefold.cute.nvgpu import cpasync


@dataclass(frozen=True)
class Config:
    """The tile of a block. Its rows are 128 bytes, which the swizzle permutes."""

    rows: int = 64
    columns: int = 64


DEFAULT = Config()


@cute.kernel
def tma_copy_kernel(mA: cute.Tensor, mB: cute.Tensor, config: cute.Constexpr[Config]):
    m, n, _ = cute.arch.block_idx()
    shape = (config.rows, config.columns)
    layout = cute.make_composed_layout(cute.make_swizzle(3, 3, 3), 0, cute.make_ordered_layout(shape, (1, 0)))
    load, coords_A = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileG2SOp(), mA, layout, shape)
    store, coords_B = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileS2GOp(), mB, layout, shape)

    sT = cute.group_modes(cute.make_smem_tensor(layout, cute.Float16, 1024), 0, 2)
    full = cute.make_smem_tensor((1,), cute.Int64, 8).ptr(0)
    gA, gB = [cute.group_modes(cute.local_tile(coords, shape, (m, n)), 0, 2) for coords in (coords_A, coords_B)]
    one = cute.make_layout(1)
    tAsA, tAgA = cpasync.tma_partition(load, 0, one, sT, gA)
    tBsB, tBgB = cpasync.tma_partition(store, 0, one, sT, gB)

    if cute.arch.thread_idx()[0] == 0:
        cute.arch.mbarrier_init(full, 1)
        cute.arch.mbarrier_init_fence()
        cute.arch.mbarrier_arrive_and_expect_tx(full, config.rows * config.columns * 2)
        cute.copy(load, tAgA, tAsA, tma_bar_ptr=full)
        cute.arch.mbarrier_wait(full, 0)
        cute.copy(store, tBsB, tBgB)
        cute.arch.cp_async_bulk_commit_group()
        cute.arch.cp_async_bulk_wait_group(0, read=True)


def tma_copy(A: Array, B: Array, config: Config = DEFAULT, device: str = "auto") -> None:
    """B = A; rows of both are multiples of 16 bytes apart."""
    grid = (-(-A.shape[0] // config.rows), -(-A.shape[1] // config.columns), 1)
    tma_copy_kernel(A, B, config).launch(grid=grid, block=(32, 1, 1), device=device)


def main(arguments: list[str] | None = None) -> None:
    options = parser("a copy of a matrix by tensor maps", m=150, n=200).parse_args(arguments)
    if options.n % 8:
        raise SystemExit(f"rows of {options.n} elements are not multiples of 16 bytes apart")
    device = chosen(options.device)
    host = normal(0, (options.m, options.n))
    A, B = place(device, host, np.full_like(host, np.nan))
    tma_copy(A, B, device=device)
    check("B", B, host, rtol=0, atol=0)


if __name__ == "__main__":
    main()
