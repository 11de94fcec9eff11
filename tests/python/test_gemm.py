# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tiled copies and tiled MMAs in Python: a GEMM with a pipeline of asynchronous copies, against NumPy."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tilefold.base.errors import TilefoldError

from tilefold import cute

M, N, K, BK, STAGES = 128, 128, 96, 32, 3


@cute.kernel
def hgemm(A: cute.Tensor, B: cute.Tensor, C: cute.Tensor, STAGES: cute.Constexpr[int], BK: cute.Constexpr[int]):
    t, _, _ = cute.arch.thread_idx()
    m, n, _ = cute.arch.block_idx()
    gA = cute.local_tile(A, (128, BK), (m, None))
    gB = cute.local_tile(B, (128, BK), (n, None))
    gC = cute.local_tile(C, (128, 128), (m, n))
    rows = cute.make_layout((128, BK, STAGES), stride=(BK, 1, 128 * BK))
    swizzled = cute.make_composed_layout(cute.make_swizzle(2, 3, 3), 0, rows)
    sA = cute.make_smem_tensor(swizzled, A.element_type, alignment=1024)
    sB = cute.make_smem_tensor(swizzled, B.element_type, alignment=1024)

    g2s = cute.make_tiled_copy_tv(
        cute.make_copy_atom(cute.nvgpu.cpasync.CopyG2SOp(cute.nvgpu.LoadCacheMode.GLOBAL), A.element_type),
        cute.make_layout((32, 4), stride=(4, 1)),
        cute.make_layout((1, 8), stride=(8, 1)),
    )
    thr_g2s = g2s.get_slice(t)
    tAgA, tBgB = thr_g2s.partition_S(gA), thr_g2s.partition_S(gB)
    tAsA, tBsB = thr_g2s.partition_D(sA), thr_g2s.partition_D(sB)

    op = cute.nvgpu.MmaOp(A.element_type, cute.Float32, (16, 8, 16))
    mma = cute.make_tiled_mma(op, (2, 2, 1), (32, 32, 16))
    thr_mma = mma.get_slice(t)
    tCsA, tCsB, tCgC = thr_mma.partition_A(sA), thr_mma.partition_B(sB), thr_mma.partition_C(gC)
    rA = mma.make_fragment_A(tCsA[None, None, None, 0])
    rB = mma.make_fragment_B(tCsB[None, None, None, 0])
    acc = mma.make_fragment_C(tCgC)
    acc.fill(0)

    ldmatrix = cute.make_copy_atom(cute.nvgpu.warp.LdMatrix8x8x16bOp(num_matrices=4), A.element_type)
    thr_A = cute.make_tiled_copy_A(ldmatrix, mma).get_slice(t)
    thr_B = cute.make_tiled_copy_B(ldmatrix, mma).get_slice(t)
    tXsA, tXsB = thr_A.partition_S(sA), thr_B.partition_S(sB)
    tXrA, tXrB = thr_A.retile_D(rA), thr_B.retile_D(rB)

    count = cute.size(gA, 2)
    for s in cute.range_constexpr(STAGES - 1):
        if s < count:
            cute.copy(g2s, tAgA[None, None, None, s], tAsA[None, None, None, s])
            cute.copy(g2s, tBgB[None, None, None, s], tBsB[None, None, None, s])
        cute.arch.cp_async_commit_group()

    for k in cute.range(count):
        cute.arch.cp_async_wait_group(STAGES - 2)
        cute.arch.sync_threads()
        ahead = k + STAGES - 1
        if ahead < count:
            to = ahead % STAGES
            cute.copy(g2s, tAgA[None, None, None, ahead], tAsA[None, None, None, to])
            cute.copy(g2s, tBgB[None, None, None, ahead], tBsB[None, None, None, to])
        cute.arch.cp_async_commit_group()
        stage = k % STAGES
        for block in cute.range_constexpr(BK // 16):
            cute.copy(thr_A, tXsA[None, None, block, stage], tXrA[None, None, block])
            cute.copy(thr_B, tXsB[None, None, block, stage], tXrB[None, None, block])
            cute.gemm(mma, acc, rA[None, None, block], rB[None, None, block], acc)

    tCgC.store(acc.load().to(C.element_type))


@pytest.mark.parametrize("stage", ["cute", "instr"])
def test_hgemm(stage: str) -> None:
    random = np.random.default_rng(0)
    a, b = random.standard_normal((M, K)).astype(np.float16), random.standard_normal((N, K)).astype(np.float16)
    c = np.full((M, N), np.nan, np.float16)
    hgemm(a, b, c, STAGES, BK).launch(grid=(M // 128, N // 128), block=128, device="sim", stage=stage)
    wanted = a.astype(np.float32) @ b.astype(np.float32).T
    np.testing.assert_allclose(c, wanted, rtol=2e-3, atol=2e-2)


def test_hgemm_is_of_tensor_cores() -> None:
    a, b, c = np.zeros((M, K), np.float16), np.zeros((N, K), np.float16), np.zeros((M, N), np.float16)
    built = hgemm(a, b, c, STAGES, BK).build(128)
    ptx = built.ptx("sm_80")
    assert ptx.count("mma.sync.aligned.m16n8k16") == 64
    assert ptx.count("ldmatrix.sync.aligned.m8n8.x4") == 16
    assert ptx.count("cp.async.cg.shared.global") == 24
    assert ".local" not in ptx


def multiply(make: Any, dtype: Any, result: Any, k: int) -> tuple[np.ndarray, np.ndarray]:
    """What one warp, or 16 x 8 threads, make of small integers by a tiled MMA, and what NumPy does."""

    @cute.kernel
    def gemm(A: cute.Tensor, B: cute.Tensor, C: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        mma = make()
        thr_mma = mma.get_slice(t)
        parts = thr_mma.partition_A(A), thr_mma.partition_B(B)
        rA, rB = thr_mma.make_fragment_A(parts[0]), thr_mma.make_fragment_B(parts[1])
        rA.store(parts[0])
        rB.store(parts[1].load())
        acc = thr_mma.partition_fragment_C(C)
        cute.fill(acc, 1)
        cute.gemm(mma, rA, rB, acc)
        cute.autovec_copy(acc, thr_mma.partition_C(C))

    random = np.random.default_rng(1)
    a, b = random.integers(-4, 5, (16, k)).astype(dtype), random.integers(-4, 5, (8, k)).astype(dtype)
    c = np.zeros((16, 8), result)
    threads = make().threads
    gemm(a, b, c).launch(grid=1, block=threads, device="sim")
    return c, a.astype(result) @ b.astype(result).T + 1


@pytest.mark.parametrize(
    ("op", "atoms", "dtype", "result", "k"),
    [
        ("SM80_16x8x16_F32F16F16F32_TN", None, np.float16, np.float32, 32),
        ("SM80_16x8x32_S32S8S8S32_TN", None, np.int8, np.int32, 32),
        (cute.nvgpu.warp.MmaF16BF16Op(cute.Float16, cute.Float16, (16, 8, 8)), None, np.float16, np.float16, 16),
        (cute.nvgpu.MmaOp(cute.TFloat32, cute.Float32, (16, 8, 4)), None, np.float32, np.float32, 8),
        (cute.nvgpu.MmaOp(cute.Float64, cute.Float64, (8, 8, 4)), (2, 1, 1), np.float64, np.float64, 8),
        (cute.nvgpu.MmaUniversalOp(cute.Float32), (16, 8, 1), np.float32, np.float32, 4),
    ],
)
def test_multiplications(op: Any, atoms: Any, dtype: Any, result: Any, k: int) -> None:
    got, wanted = multiply(lambda: cute.make_tiled_mma(op, atoms), dtype, result, k)
    assert got.tolist() == wanted.tolist()


TYPES = [
    (cute.Float16, cute.Float16, (16, 8, 8)),
    (cute.BFloat16, cute.Float32, (16, 8, 16)),
    (cute.TFloat32, cute.Float32, (16, 8, 8)),
    (cute.Float64, cute.Float64, (8, 8, 4)),
    (cute.Int8, cute.Int32, (16, 8, 32)),
    (cute.Uint8, cute.Int32, (16, 8, 16)),
    (cute.Float8E4M3FN, cute.Float32, (16, 8, 32)),
    (cute.Float8E5M2, cute.Float32, (16, 8, 32)),
]
HOST = {"BFloat16": "bfloat16", "Float8E4M3FN": "float8_e4m3fn", "Float8E5M2": "float8_e5m2", "TFloat32": "float32"}


@pytest.mark.parametrize(("dtype", "sums", "shape"), TYPES, ids=[str(a) for a, _, _ in TYPES])
def test_matrix_instructions_of_each_type(dtype: cute.DType, sums: cute.DType, shape: tuple[int, int, int]) -> None:
    m, n, k = (2 * extent for extent in shape)
    rng = np.random.default_rng(0)
    element = getattr(ml_dtypes, HOST.get(dtype.name, ""), None) or np.dtype(HOST.get(dtype.name, dtype.name.lower()))
    A, B = (rng.integers(0, 4, each).astype(element) for each in ((m, k), (n, k)))

    @cute.kernel
    def multiply(A: cute.Tensor, B: cute.Tensor, C: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        mma = cute.make_tiled_mma(cute.nvgpu.MmaOp(dtype, sums, shape)).get_slice(t)
        tA, tB, tC = mma.partition_A(A), mma.partition_B(B), mma.partition_C(C)
        rA, rB, rC = mma.make_fragment_A(tA), mma.make_fragment_B(tB), mma.make_fragment_C(tC)
        cute.autovec_copy(tA, rA)
        cute.autovec_copy(tB, rB)
        rC.fill(0)
        cute.gemm(mma, rA, rB, rC)
        cute.autovec_copy(rC, tC)

    for stage in ("cute", "instr"):
        C = np.zeros((m, n), sums.name.lower())
        multiply(A, B, C).launch(grid=1, block=32, device="sim", stage=stage)
        assert np.array_equal(C.astype(np.float64), A.astype(np.float64) @ B.astype(np.float64).T)


@pytest.mark.parametrize("stage", ["cute", "instr"])
def test_accumulators_of_a_shape(stage: str) -> None:
    """Fragments made for shapes of parts, as of parts themselves; 8-bit matrices by ldmatrix."""

    @cute.kernel
    def multiply(A: cute.Tensor, B: cute.Tensor, C: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        op = cute.nvgpu.warp.MmaFP8Op(cute.Float8E4M3FN, cute.Float32, (16, 8, 32))
        mma = cute.make_tiled_mma(op, cute.make_layout((1, 1, 1)), permutation_mnk=(16, 16, 32))
        assert mma.shape_mnk == (16, 8, 32)
        assert mma.tv_layout_C == cute.make_layout(((4, 8), (2, 2)), stride=((32, 1), (16, 8)))
        thr = mma.get_slice(t)
        acc = thr.make_fragment_C(thr.partition_shape_C((16, 16)))
        assert acc.shape == thr.partition_C(C).shape
        assert acc.element_type == cute.Float32
        assert thr.partition_shape_A((16, 32)) == thr.partition_A(A).shape
        assert thr.partition_shape_B((16, 32)) == thr.partition_B(B).shape
        acc.fill(0)
        sA = cute.make_smem_tensor(cute.make_layout((16, 32), stride=(32, 1)), A.element_type)
        cute.autovec_copy(cute.local_partition(A, cute.make_layout((16, 2)), t), cute.local_partition(sA, (16, 2), t))
        cute.arch.sync_threads()
        rA = mma.make_fragment_A(thr.partition_A(sA))
        load = cute.make_copy_atom(cute.nvgpu.warp.LdMatrix8x16x8bOp(num_matrices=4), A.element_type)
        matrices = cute.make_tiled_copy_A(load, mma).get_slice(t)
        cute.copy(load, matrices.partition_S(sA), matrices.retile(rA))
        rB = mma.make_fragment_B(thr.partition_B(B))
        cute.autovec_copy(thr.partition_B(B), rB)
        cute.gemm(mma, acc, rA, rB, acc)
        cute.autovec_copy(acc, thr.partition_C(C))

    rng = np.random.default_rng(0)
    a, b = (rng.integers(-4, 5, (16, 32)).astype(ml_dtypes.float8_e4m3fn) for _ in range(2))
    c = np.zeros((16, 16), np.float32)
    multiply(a, b, c).launch(grid=1, block=32, device="sim", stage=stage)
    assert c.tolist() == (a.astype(np.float32) @ b.astype(np.float32).T).tolist()


def test_a_matrix_instruction_of_other_types_is_refused() -> None:
    with pytest.raises(TilefoldError, match="multiplies floats of 16 bits, not Float32"):
        cute.make_tiled_mma(cute.nvgpu.warp.MmaF16BF16Op(cute.Float32, cute.Float32, (16, 8, 8)))
    with pytest.raises(TilefoldError, match="does not transpose"):
        cute.make_copy_atom(cute.nvgpu.warp.LdMatrix8x16x8bOp(transpose=True), cute.Float8E5M2)
    assert cute.make_tiled_mma(cute.nvgpu.warp.MmaTF32Op((16, 8, 4))).shape_mnk == (16, 8, 4)


def test_a_load_of_more_matrices_than_an_operand_has() -> None:
    @cute.kernel
    def kernel(A: cute.Tensor, B: cute.Tensor, C: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        mma = cute.make_tiled_mma(cute.nvgpu.MmaOp(A.element_type, cute.Float32, (16, 8, 16)))
        sB = cute.make_smem_tensor(cute.make_layout((16, 16), stride=(16, 1)), B.element_type, alignment=16)
        for i in cute.range_constexpr(8):
            sB[t // 2, t % 2 * 8 + i] = B[t // 2, t % 2 * 8 + i]
        cute.arch.sync_threads()
        thr = mma.get_slice(t)
        rA, acc = thr.make_fragment_A(thr.partition_A(A)), thr.make_fragment_C(thr.partition_C(C))
        rB = thr.make_fragment_B(thr.partition_B(sB))
        ldmatrix = cute.make_copy_atom(cute.nvgpu.warp.LdMatrix8x8x16bOp(num_matrices=4), B.element_type)
        thr_B = cute.make_tiled_copy_B(ldmatrix, mma).get_slice(t)  # B has 2 matrices
        cute.copy(thr_B, thr_B.partition_S(sB), thr_B.retile(rB))
        rA.store(thr.partition_A(A).load())
        acc.fill(0)
        cute.gemm(mma, acc, rA, rB, acc)
        thr.partition_C(C).store(acc.load())

    A, B = np.random.default_rng(0).integers(-3, 4, (2, 16, 16)).astype(np.float16)
    C = np.zeros((16, 16), np.float32)
    kernel(A, B, C).launch(grid=1, block=32, device="sim")
    assert np.array_equal(C, A.astype(np.float32) @ B.T.astype(np.float32))
