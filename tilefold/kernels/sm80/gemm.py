# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products by mma.sync for matrices of any extents: D = act(scale_m * (A @ B^T) * scale_n + bias) * gate + residual.

A block has 64 x 128 elements of D and goes through K by strips of 64; cp.async loads some of them while
one is multiplied. Elements are f16 or bf16; docs/gemm.md explains a faster main loop for whole tiles.
"""

from typing import Any

from tilefold import cute
from tilefold.cute.typing import Int

from ..arguments import Array, any_rows, dtype_of, like, refuse, step_of
from ..replay import Launch, Launches
from .parts import Loads, Warps, by_rows, shared_layout

ROWS, COLUMNS, DEPTH, STAGES, WARPS = 64, 128, 64, 3, 4
THREADS = 32 * WARPS


@cute.kernel
def gemm_kernel(
    mA: cute.Tensor,
    mB: cute.Tensor,
    mD: cute.Tensor,
    bias: cute.Tensor | None,
    activation: cute.Constexpr[Any],
    scale_m: cute.Tensor | None,
    scale_n: cute.Tensor | None,
    gate: cute.Tensor | None,
    residual: cute.Tensor | None,
):
    n, m = cute.arch.block_idx()[0], cute.arch.block_idx()[1]
    half = mA.element_type
    sA = cute.make_smem_tensor(shared_layout(ROWS, DEPTH, STAGES), half, alignment=1024)
    sB = cute.make_smem_tensor(shared_layout(COLUMNS, DEPTH, STAGES), half, alignment=1024)
    load_a, load_b = Loads(half, THREADS, ROWS, DEPTH), Loads(half, THREADS, COLUMNS, DEPTH)
    warps = Warps(half, WARPS)
    sums = warps.sums(ROWS, COLUMNS)
    sums.fill(0.0)
    count = cute.ceil_div(mA.shape[1], DEPTH)

    def fetch(k: Int, stage: Int) -> None:
        load_a.begin(mA, m, sA[None, None, stage], k)
        load_b.begin(mB, n, sB[None, None, stage], k)

    for k in cute.range_constexpr(STAGES - 1):
        if k < count:
            fetch(k, k)
        cute.arch.cp_async_commit_group()
    for k in cute.range(count):
        cute.arch.cp_async_wait_group(STAGES - 2)
        cute.arch.sync_threads()
        if k + STAGES - 1 < count:
            fetch(k + STAGES - 1, (k + STAGES - 1) % STAGES)
        cute.arch.cp_async_commit_group()
        warps.multiply(sums, sA[None, None, k % STAGES], sB, k % STAGES)
    cute.arch.cp_async_wait_group(0)

    places, S = by_rows(warps.places(ROWS, COLUMNS)), by_rows(sums)
    for r in cute.range_constexpr(2):
        for c in cute.range_constexpr(COLUMNS // 4):
            row, column = m * ROWS + places[r, c][0], n * COLUMNS + places[r, c][1]
            if (row < mD.shape[0]) & (column < mD.shape[1]):
                x = S[r, c]
                if scale_m is not None:
                    x = x * scale_m[row]
                if scale_n is not None:
                    x = x * scale_n[column]
                if bias is not None:
                    x = x + bias[column].to(cute.Float32)
                if activation is not None:
                    x = activation(x)
                if gate is not None:
                    x = x * gate[row, column].to(cute.Float32)
                if residual is not None:
                    x = x + residual[row, column].to(cute.Float32)
                mD[row, column] = x.to(mD.element_type)


def _operand(x: Array) -> Array:
    """A matrix whose rows are contiguous and have a multiple of 16 bytes, perhaps a copy padded with zeros."""
    rows, columns = x.shape
    if columns % 8 == 0 and (columns == 1 or step_of(x, 1) == 1):
        return x
    padded = like(x, (rows, -(-columns // 8) * 8))
    padded[:, columns:] = 0
    padded[:, :columns] = x
    return padded


def product(
    d: Array, a: Array, b: Array, by_rows: bool, blocks: int, bias: Array | None, activation: object, scale_m: object,
    scale_n: object, gate: Array | None, residual: Array | None, autotune: bool = False, accurate: bool = False,
) -> Launches:  # fmt: skip
    """D, by blocks for all tiles. LaunchError (E3106) for elements that are not of 16 bits. There is
    one configuration, so nothing to measure, and products of 16 bits are added in f32."""
    if dtype_of(a) not in ("float16", "bfloat16"):
        refuse("gemm", f"a has elements of {dtype_of(a)}", "this target multiplies float16 and bfloat16")
    if not a.shape[1]:
        a, b = (like(x, (x.shape[0], 8)) for x in (a, b))
        a[...] = 0
        b[...] = 0
    a, b = _operand(a), _operand(b)
    given = (
        any_rows(a),
        b,
        any_rows(d),
        bias,
        activation,
        any_rows(scale_m),
        scale_n,
        any_rows(gate),
        any_rows(residual),
    )
    yield Launch(gemm_kernel, given, (-(-d.shape[1] // COLUMNS), -(-d.shape[0] // ROWS)), THREADS)
