# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Small multiplications by warpgroups in Python, of every type, source of A, major and layout: the kernel, its operands
and its result. Operands are brought to shared memory by plain stores.
"""

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from tilefold import cute
from tilefold.cute.nvgpu import warpgroup
from tilefold.cute.utils import LayoutEnum, hopper_helpers

Array = NDArray[Any]
TYPES = {
    "f16": (cute.Float16, cute.Float16, cute.Float32),
    "f16_f16": (cute.Float16, cute.Float16, cute.Float16),
    "bf16": (cute.BFloat16, cute.BFloat16, cute.Float32),
    "tf32": (cute.TFloat32, cute.TFloat32, cute.Float32),
    "e4m3": (cute.Float8E4M3FN, cute.Float8E4M3FN, cute.Float32),
    "e5m2_e4m3": (cute.Float8E5M2, cute.Float8E4M3FN, cute.Float16),
    "s8": (cute.Int8, cute.Int8, cute.Int32),
    "u8_s8": (cute.Uint8, cute.Int8, cute.Int32),
}
"""The types of A, B and the accumulator."""
ROWS = LayoutEnum.ROW_MAJOR, LayoutEnum.ROW_MAJOR


@dataclass(frozen=True)
class Case:
    """A product of M x K and N x K elements by `warpgroups` along M and N, with `stages` of shared memory through which
    the block goes in turn. `orders` says which mode of A and of B is contiguous; `mode` is the swizzle, by default the
    widest.
    """

    types: str = "f16"
    n: int = 64
    k: int = 64
    blocks: tuple[int, int] = (1, 1)
    warpgroups: tuple[int, int] = (1, 1)
    source: warpgroup.OperandSource = warpgroup.OperandSource.SMEM
    orders: tuple[LayoutEnum, LayoutEnum] = ROWS
    mode: str | None = None
    stages: int = 1

    @property
    def tile(self) -> tuple[int, int, int]:
        """M, N and K of the block's product."""
        m, n = [blocks * groups for blocks, groups in zip(self.blocks, self.warpgroups, strict=True)]
        return 64 * m, self.n * n, self.k

    @property
    def threads(self) -> int:
        """The threads of the block."""
        return 128 * self.warpgroups[0] * self.warpgroups[1]

    def tiled_mma(self) -> cute.TiledMma:
        """The tiled MMA."""
        a, b, acc = TYPES[self.types]
        majors = [order.sm90_mma_major_mode() for order in self.orders]
        return hopper_helpers.make_trivial_tiled_mma(
            a, b, majors[0], majors[1], acc, (*self.warpgroups, 1), (64, self.n), self.source
        )

    def smem(self, operand: int) -> Any:
        """The layout of shared memory of A (0) or B (1)."""
        dtype, order = TYPES[self.types][operand], self.orders[operand]
        if self.mode is None:
            make = (hopper_helpers.make_smem_layout_a, hopper_helpers.make_smem_layout_b)[operand]
            return make(order, self.tile, dtype, self.stages)
        rows = order is LayoutEnum.ROW_MAJOR
        kind = warpgroup.SmemLayoutAtomKind(f"{'K' if rows else 'MN'}_{self.mode}")
        shape = (self.tile[operand], self.tile[2], self.stages)
        return cute.tile_to_shape(warpgroup.make_smem_layout_atom(kind, dtype), shape, (0, 1, 2) if rows else (1, 0, 2))

    def operands(self) -> tuple[Array, Array, Array]:
        """A, B and an accumulator, which the kernel adds to."""
        m, n, k = self.tile
        rng = np.random.default_rng(n + k)
        types = [numpy_type(dtype) for dtype in TYPES[self.types]]
        return tuple([rng.integers(-4, 5, shape).astype(np.int8 if d.kind in "iu" else np.float32).astype(d)  # pyright: ignore[reportReturnType]
                      for d, shape in zip(types, ((m, k), (n, k), (m, n)), strict=True)])  # fmt: skip

    def expected(self, a: Array, b: Array, c: Array) -> NDArray[np.float64]:
        """The result, which is exact: twice the product of small integers, and C."""
        return 2 * (a.astype(np.float64) @ b.astype(np.float64).T) + c.astype(np.float64)


def numpy_type(dtype: Any) -> np.dtype[Any]:
    """The type of NumPy of a type of elements."""
    names = {"BFloat16": "bfloat16", "Float8E4M3FN": "float8_e4m3fn", "Float8E5M2": "float8_e5m2"}
    if dtype.name in names:
        return np.dtype(getattr(ml_dtypes, names[dtype.name]))
    return np.dtype(dtype.name.replace("TFloat", "float").lower())


@cute.kernel
def multiply(A: cute.Tensor, B: cute.Tensor, C: cute.Tensor, case: cute.Constexpr[Any]):
    """C += 2 * A * B^T: all stages hold A and B, which are multiplied twice."""
    t, _, _ = cute.arch.thread_idx()
    mma = case.tiled_mma()
    thr = mma.get_slice(t)
    sA = cute.make_smem_tensor(case.smem(0), A.element_type, alignment=1024)
    sB = cute.make_smem_tensor(case.smem(1), B.element_type, alignment=1024)
    threads = cute.make_layout((8, case.threads // 8), stride=(case.threads // 8, 1))
    for stage in cute.range(case.stages):
        cute.autovec_copy(cute.local_partition(A, threads, t), cute.local_partition(sA[None, None, stage], threads, t))
        cute.autovec_copy(cute.local_partition(B, threads, t), cute.local_partition(sB[None, None, stage], threads, t))
    cute.arch.fence_proxy("async.shared", space="cta")
    cute.arch.sync_threads()
    tCrB = mma.make_fragment_B(thr.partition_B(sB))
    tCgC = thr.partition_C(C)
    acc = cute.make_rmem_tensor(tCgC.shape, TYPES[case.types][2])
    if case.source is warpgroup.OperandSource.SMEM:
        tCrA = mma.make_fragment_A(thr.partition_A(sA))
    else:
        tCrA = mma.make_fragment_A(thr.partition_A(A))
        cute.autovec_copy(thr.partition_A(A), tCrA)
    cute.autovec_copy(tCgC, acc)
    mma.set(warpgroup.Field.ACCUMULATE, True)
    for turn in cute.range(2):
        stage = turn % case.stages
        warpgroup.fence()
        for k in cute.range(cute.size(tCrB, mode=[2]), unroll_full=True):
            left = tCrA[None, None, k, stage] if cute.rank(tCrA) == 4 else tCrA[None, None, k]
            cute.gemm(mma, acc, left, tCrB[None, None, k, stage], acc)
        warpgroup.commit_group()
    warpgroup.wait_group(0)
    cute.autovec_copy(acc, tCgC)
