# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One copy in four ways: by indices, by layout algebra, by a thread-value layout, and by a tiled copy.

128 threads load 8 x 128 elements into registers, 8 neighbours of a row each. They write what they have loaded to B,
so that it can be compared. Each compiles to one load and one store of 16 bytes; examples/four_ways.cute is the same in
`.cute` text.

    python examples/python/four_ways.py --device sim
"""

import numpy as np
from common import check, chosen, parser, place

import tilefold
from tilefold import cute


@cute.kernel
def by_indices(
    mA: cute.Tensor,
    mB: cute.Tensor,
    TILE_M: tilefold.Constexpr,
    TILE_K: tilefold.Constexpr,
    VALUES: tilefold.Constexpr,
):
    tidx, _, _ = cute.arch.thread_idx()
    across = TILE_K // VALUES
    m_idx = tidx // across
    k_idx = (tidx % across) * VALUES
    rA = cute.make_rmem_tensor((VALUES), dtype=mA.element_type)
    for i in tilefold.range(VALUES):
        rA[i] = mA[m_idx, k_idx + i]
    if tidx == 1:
        cute.print_tensor(rA)
    for i in tilefold.range(VALUES):
        mB[m_idx, k_idx + i] = rA[i]


@cute.kernel
def by_layout_algebra(
    mA: cute.Tensor,
    mB: cute.Tensor,
    TILE_M: tilefold.Constexpr,
    TILE_K: tilefold.Constexpr,
    VALUES: tilefold.Constexpr,
):
    tidx, _, _ = cute.arch.thread_idx()

    def part(tensor: cute.Tensor) -> cute.Tensor:
        tile = cute.local_tile(tensor, (TILE_M, TILE_K), (0, 0))
        divided = cute.flat_divide(tile, (1, VALUES))  # (TileM, TileK, RestM, RestK)
        layout = cute.select(divided.layout, [0, 1, 3, 2])  # (TileM, TileK, RestK, RestM)
        divided = cute.make_tensor(divided.iterator, layout)
        return cute.group_modes(divided, 2, 4)[0, None, tidx]  # (TileK)

    rA = cute.make_rmem_tensor((VALUES), dtype=mA.element_type)
    cute.autovec_copy(part(mA), rA)
    if tidx == 1:
        cute.print_tensor(rA)
    cute.autovec_copy(rA, part(mB))


def thread_value_layout(TILE_M: int, TILE_K: int, VALUES: int) -> cute.Layout:
    """(T, V) -> (M, K): neighbours of a row to a thread, rows of the tile one after the other."""
    shape = ((TILE_K // VALUES, TILE_M), VALUES)
    return cute.make_layout(shape, stride=((TILE_M * VALUES, 1), TILE_M))


@cute.kernel
def by_composition(
    mA: cute.Tensor,
    mB: cute.Tensor,
    TILE_M: tilefold.Constexpr,
    TILE_K: tilefold.Constexpr,
    VALUES: tilefold.Constexpr,
):
    tidx, _, _ = cute.arch.thread_idx()
    TV_layout = thread_value_layout(TILE_M, TILE_K, VALUES)
    gA = cute.local_tile(mA, (TILE_M, TILE_K), (0, 0))
    gB = cute.local_tile(mB, (TILE_M, TILE_K), (0, 0))
    tAgA = cute.composition(gA, TV_layout)[tidx, None]  # (V)
    tBgB = cute.composition(gB, TV_layout)[tidx, None]
    rA = cute.make_rmem_tensor((VALUES), dtype=mA.element_type)
    cute.autovec_copy(tAgA, rA)
    if tidx == 1:
        cute.print_tensor(rA)
    cute.autovec_copy(rA, tBgB)


@cute.kernel
def by_tiled_copy(
    mA: cute.Tensor,
    mB: cute.Tensor,
    TILE_M: tilefold.Constexpr,
    TILE_K: tilefold.Constexpr,
    VALUES: tilefold.Constexpr,
):
    tidx, _, _ = cute.arch.thread_idx()
    gA = cute.local_tile(mA, (TILE_M, TILE_K), (0, 0))
    gB = cute.local_tile(mB, (TILE_M, TILE_K), (0, 0))
    TV_layout = thread_value_layout(TILE_M, TILE_K, VALUES)
    copy_atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), mA.element_type)
    tiled_copy = cute.make_tiled_copy(copy_atom, TV_layout, (TILE_M, TILE_K))
    thr_copy = tiled_copy.get_slice(tidx)
    tAgA = thr_copy.partition_S(gA)  # (Cpy, RestM, RestK)
    tBgB = thr_copy.partition_D(gB)
    rA = cute.make_rmem_tensor_like(tBgB)
    cute.copy(tiled_copy, tAgA, rA)
    if tidx == 1:
        cute.print_tensor(rA)
    cute.copy(tiled_copy, rA, tBgB)


KERNELS = (by_indices, by_layout_algebra, by_composition, by_tiled_copy)


def main(arguments: list[str] | None = None) -> None:
    options = parser("one copy in four ways").parse_args(arguments)
    device = chosen(options.device)
    host = np.arange(8 * 128, dtype=np.float16).reshape(8, 128)
    for kernel in KERNELS:
        A, B = place(device, host, np.zeros_like(host))
        kernel(A, B, 8, 128, 8).launch(grid=(1, 1, 1), block=(128, 1, 1), device=device)
        check(kernel.function.__name__, B, host, rtol=0, atol=0)


if __name__ == "__main__":
    main()
