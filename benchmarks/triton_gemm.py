# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A matrix product in Triton, a peer: a tile for each program, tuned by Triton. Imported only where it is installed."""

# pyright: basic, reportInvalidTypeForm=false
# Triton is not installed where types are checked, and reads the annotations of its kernels itself.

from functools import cache
from importlib import import_module
from typing import Any

triton: Any = import_module("triton")
tl: Any = import_module("triton.language")

GROUP = 8
TILES = ((128, 256, 8, 3), (128, 128, 8, 4), (64, 128, 4, 4))
"""The configurations to try: rows and columns of a tile, warps, stages; a tile of K has 128 bytes."""


@triton.jit
def _matmul(
    a, b, d, m, n, k, a_m, a_k, b_n, b_k,
    sums: "tl.constexpr", tile_m: "tl.constexpr", tile_n: "tl.constexpr", tile_k: "tl.constexpr", group: "tl.constexpr",
):  # fmt: skip
    tiles_m, tiles_n = tl.cdiv(m, tile_m), tl.cdiv(n, tile_n)
    of_group = group * tiles_n
    first = tl.program_id(0) // of_group * group
    rows_of_group = min(tiles_m - first, group)
    i = first + tl.program_id(0) % of_group % rows_of_group
    j = tl.program_id(0) % of_group // rows_of_group
    rows, columns, depths = i * tile_m + tl.arange(0, tile_m), j * tile_n + tl.arange(0, tile_n), tl.arange(0, tile_k)
    at_a = a + (rows % m)[:, None] * a_m + depths[None, :] * a_k
    at_b = b + (columns % n)[None, :] * b_n + depths[:, None] * b_k
    acc = tl.zeros((tile_m, tile_n), dtype=sums)
    for step in range(tl.cdiv(k, tile_k)):
        left = k - step * tile_k
        x = tl.load(at_a, mask=depths[None, :] < left, other=0)
        y = tl.load(at_b, mask=depths[:, None] < left, other=0)
        acc = tl.dot(x, y, acc, out_dtype=sums)
        at_a += tile_k * a_k
        at_b += tile_k * b_k
    place = d + rows[:, None] * n + columns[None, :]
    tl.store(place, acc.to(d.dtype.element_ty), mask=(rows[:, None] < m) & (columns[None, :] < n))


@cache
def _tuned(size: int) -> Any:
    """The kernel for elements of this many bytes."""
    configurations = [
        triton.Config({"tile_m": m, "tile_n": n, "tile_k": 128 // size}, num_warps=warps, num_stages=stages)
        for m, n, warps, stages in TILES
    ]
    return triton.autotune(configurations, key=["m", "n", "k"])(_matmul)


def matmul(a: Any, b: Any, d: Any) -> None:
    """Queues D = A * B^T of tensors (M,K), (N,K) and, of rows, (M,N)."""
    (m, k), n = a.shape, b.shape[0]
    sums = tl.float32 if d.dtype.is_floating_point else tl.int32

    def grid(chosen: Any) -> tuple[int]:
        return (triton.cdiv(m, chosen["tile_m"]) * triton.cdiv(n, chosen["tile_n"]),)

    _tuned(a.element_size())[grid](a, b, d, m, n, k, *a.stride(), *b.stride(), sums, group=GROUP)
