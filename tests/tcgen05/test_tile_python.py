# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`cute.nvgpu.tcgen05`: a multiplication into tensor memory in CuTe's words, its operations, and what they refuse."""

from typing import Any

import numpy as np
import pytest
from tilefold.base.errors import TilefoldError

from tests.tcgen05.results import copy_result
from tilefold import cute
from tilefold.cute.nvgpu import cpasync, tcgen05
from tilefold.cutlass.experimental import primitives as prims

M, N, K = 128, 64, 64
Repetition = tcgen05.Repetition


@cute.kernel
def multiply(A: cute.Tensor, B: cute.Tensor, D: cute.Tensor, negates: cute.Constexpr) -> None:
    """D = A * B^T of one tile; A and B come by TMA copies."""
    t, _, _ = cute.arch.thread_idx()
    warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
    mma = cute.make_tiled_mma(tcgen05.MmaF16BF16Op(cute.Float16, cute.Float32, (M, N, 16)))
    mma.set(tcgen05.Field.NEGATE_A, negates)
    kind = tcgen05.make_smem_layout_atom(tcgen05.SmemLayoutAtomKind.K_SW128, cute.Float16)
    a_layout = tcgen05.tile_to_mma_shape(kind, mma.partition_shape_A((M, K)))
    b_layout = tcgen05.tile_to_mma_shape(kind, mma.partition_shape_B((N, K)))
    sA, sB = (cute.make_smem_tensor(layout, cute.Float16, 1024) for layout in (a_layout, b_layout))
    slot, bars = cute.make_smem_tensor(1, cute.Int32), cute.make_smem_tensor(2, cute.Int64).iterator
    op = cpasync.CopyBulkTensorTileG2SOp()
    a_map, a_all = cute.nvgpu.make_tiled_tma_atom_A(op, A, a_layout, (M, N, K), mma)
    b_map, b_all = cute.nvgpu.make_tiled_tma_atom_B(op, B, b_layout, (M, N, K), mma)
    own, one = mma.get_slice(0), cute.make_layout(1)
    gA, gB = own.partition_A(cute.local_tile(a_all, (M, K), (0, 0))), own.partition_B(b_all)
    gD = own.partition_C(D)
    tAsA, tAgA = cpasync.tma_partition(a_map, 0, one, cute.group_modes(sA, 0, 3), cute.group_modes(gA, 0, 3))
    tBsB, tBgB = cpasync.tma_partition(b_map, 0, one, cute.group_modes(sB, 0, 3), cute.group_modes(gB, 0, 3))
    if warp == 0:
        cute.arch.alloc_tmem(N, slot.iterator)
        cute.arch.relinquish_tmem_alloc_permit()
    if t == 0:
        cute.arch.mbarrier_init(bars, 1)
        cute.arch.mbarrier_init(bars + 1, 1)
        cute.arch.mbarrier_init_fence()
    cute.arch.sync_threads()
    start = cute.arch.retrieve_tmem_ptr(cute.Float32, 16, slot.iterator)
    acc = cute.make_tensor(start, mma.make_fragment_C(mma.partition_shape_C((M, N))).layout)
    rA, rB = mma.make_fragment_A(sA), mma.make_fragment_B(sB)
    if warp == 0:
        if t == 0:
            cute.arch.mbarrier_arrive_and_expect_tx(bars, (M + N) * K * 2)
        cute.copy(a_map, tAgA, tAsA, tma_bar_ptr=bars)
        cute.copy(b_map, tBgB, tBsB, tma_bar_ptr=bars)
        cute.arch.mbarrier_wait(bars, 0)
        prims.tcgen05_fence(prims.Tcgen05Fence.AFTER_THREAD_SYNC)
        for k in cute.range_constexpr(cute.size(rA, mode=[2])):
            whole = (None, None, None)  # D and C are views of their own; one thread of the warp issues it
            cute.gemm(mma, acc[whole], rA[None, None, k], rB[None, None, k], acc[whole])
            mma.set(tcgen05.Field.ACCUMULATE, True)
        tcgen05.commit(bars + 1)
    cute.arch.mbarrier_wait(bars + 1, 0)
    prims.tcgen05_fence(prims.Tcgen05Fence.AFTER_THREAD_SYNC)
    copy_result(acc, gD, start, N)


@pytest.mark.parametrize("negates", [False, True])
@pytest.mark.sampled(1)
def test_a_multiplication(negates: bool) -> None:
    chance = np.random.default_rng(0)
    A, B = (chance.integers(-8, 9, (rows, K)).astype(np.float16) for rows in (M, N))
    D = np.zeros((M, N), np.float32)
    multiply(A, B, D, negates).launch(grid=1, block=M, device="sim")
    expected = A.astype(np.float32) @ B.astype(np.float32).T
    assert np.array_equal(D, -expected if negates else expected)


class Fp4Op(tcgen05.MmaMXF4NVF4Op):
    """The instruction for elements of 4 bits with any scale factors, as a library derives it."""

    def __init__(self, sf_dtype: Any, vector: int, shape: tuple[int, int, int]) -> None:
        fp4, source = cute.Float4E2M1FN, tcgen05.OperandSource.SMEM
        given = fp4, fp4, cute.Float32, sf_dtype, vector, shape, tcgen05.CtaGroup.ONE, source
        tcgen05.BlockScaledMmaOp.__init__(self, *given)
        self._verify()


OPS: dict[str, tuple[Any, str]] = {
    "f16": (tcgen05.MmaF16BF16Op(cute.Float16, cute.Float32, (256, 64, 16), tcgen05.CtaGroup.TWO), "F16BF16_2x1SM_SS"),
    "tf32": (tcgen05.MmaTF32Op((128, 64, 8)), "TF32_SS<tfloat32_t"),
    "s8": (tcgen05.MmaI8Op(cute.Int8, (128, 64, 32), b_dtype=cute.Uint8), "S8_SS<int8_t,uint8_t,int32_t"),
    "fp8": (tcgen05.MmaFP8Op(cute.Float8E4M3FN, cute.Float32, (64, 64, 32)), "F8F6F4_SS<float_e4m3_t,float_e4m3_t"),
    "A in tensor memory": (
        tcgen05.MmaF16BF16Op(
            cute.BFloat16, cute.Float32, (128, 64, 16), tcgen05.CtaGroup.ONE, tcgen05.OperandSource.TMEM
        ),
        "F16BF16_TS",
    ),
    "mxf8": (tcgen05.MmaMXF8Op(cute.Float8E5M2, (128, 64, 32)), "MXF8F6F4_SS<float_e5m2_t"),
    "mxf4": (tcgen05.MmaMXF4Op((128, 64, 64)), "float_ue8m0_t,128,64,32"),
    "nvf4": (tcgen05.MmaMXF4NVF4Op(cute.Float8E4M3FN, (128, 64, 64)), "float_ue4m3_t,128,64,16"),
    "derived": (Fp4Op(cute.Float8E8M0FNU, 32, (128, 64, 64)), "float_ue8m0_t,128,64,32"),
    "K = 96": (tcgen05.SM103MmaMXF4NVF4Op(cute.Float8E4M3FN, (128, 64, 96)), "SM103_MXF4_ULTRA_SS_VS"),
}


@pytest.mark.parametrize("name", OPS)
def test_operations_are_atoms_by_cutes_names(name: str) -> None:
    op, said = OPS[name]
    assert said in str(op.atom())


def test_copies_have_properties() -> None:
    load = cute.make_copy_atom(tcgen05.Ld16x256bOp(Repetition(8)), cute.Float32)
    store = cute.make_copy_atom(tcgen05.St32x32bOp(Repetition.x16, tcgen05.Unpack.UNPACK_32b_IN_16b), cute.Float16)
    assert tcgen05.get_tmem_copy_properties(load) == (16, 256, 8, tcgen05.Pack.NONE)
    assert tcgen05.get_tmem_copy_properties(store) == (32, 32, 16, tcgen05.Unpack.UNPACK_32b_IN_16b)
    assert tcgen05.is_tmem_load(load) > tcgen05.is_tmem_store(load)
    other = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), cute.Float32)
    with pytest.raises(TilefoldError, match="neither loads from tensor memory nor stores to it"):
        tcgen05.get_tmem_copy_properties(other)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: tcgen05.MmaF16BF16Op(cute.Float16, cute.Float32, (128, 64, 32)).atom(), "has K = 16, not 32"),
        (lambda: tcgen05.MmaF16BF16Op(cute.Float32, cute.Float32, (128, 64, 16)).atom(), "has no types"),
        (lambda: tcgen05.MmaFP8Op(cute.Float8E4M3FN, cute.Float32, (96, 64, 32)).atom(), "has no shape 96 x 64"),
        (lambda: tcgen05.make_tmem_copy(
            cute.make_copy_atom(tcgen05.Ld32x32bOp(), cute.Float32), cute.make_layout((64, 64))
        ), "E0308"),
        (lambda: cute.make_tiled_mma(OPS["s8"][0]).set(tcgen05.Field.NEGATE_A, True), "does not negate"),
        (lambda: cute.make_tiled_mma(OPS["f16"][0]).set(tcgen05.Field.SFA, None), "has no field"),
    ],
)  # fmt: skip
def test_refused(make: Any, said: str) -> None:
    with pytest.raises(TilefoldError, match=said):
        make()
