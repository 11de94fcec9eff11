# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The primitives of tensor memory in kernels in Python: `cutlass.experimental.primitives`."""

from typing import Any

import numpy as np
import pytest
from tilefold.base.errors import TilefoldError
from tilefold.builder.primitives.arrays import Array

from tests.tcgen05.results import store_rows
from tilefold import cute
from tilefold.cute.nvgpu import tcgen05
from tilefold.cutlass.experimental import primitives as prims

SMEM = cute.AddressSpace.smem
M, N, K = 128, 64, 16


@cute.kernel
def multiply(A: cute.Tensor, B: cute.Tensor, D: cute.Tensor, fenced: cute.Constexpr) -> None:
    """D = A * B of one tile: 128 threads write core matrices, one of them multiplies, each loads a row."""
    t, _, _ = cute.arch.thread_idx()
    warp = cute.arch.warp_idx()
    a = Array(cute.Float16, (K // 8, M, 8), SMEM)
    b = Array(cute.Float16, (K // 8, N, 8), SMEM)
    bar, slot = Array(cute.Int64, 1, SMEM), Array(cute.Int32, 1, SMEM)
    for k in cute.range_constexpr(K):
        a[k // 8, t, k % 8] = A[t, k]
        if t < N:
            b[k // 8, t, k % 8] = B[t, k]
    if warp == 0:
        prims.tcgen05_alloc(slot, N)
        prims.tcgen05_relinquish_alloc_permit()
    if t == 0:
        prims.mbarrier_init(bar, 1)
        prims.fence_mbarrier_init()
    cute.arch.fence_proxy("async")
    cute.arch.barrier()
    tile = prims.make_tmem_ptr(slot[0], cute.Float32)
    of_a, form = cute.Int64(0), prims.Tcgen05SmemSwizzle.NONE
    if warp == 0:
        of_a = prims.Tcgen05SmemDesc.build(a, leading_byte_offset=M * 16, stride_byte_offset=128, layout=form)
    if t == 0:
        build = prims.Tcgen05SmemDesc.build
        for step in cute.range(1):  # a descriptor plus the number of a step is of the type of indices
            prims.tcgen05_mma(
                prims.Tcgen05MMAKind.F16, prims.CTAGroup.CTA_1,
                Array(tile.data_ptr(), dtype=cute.Int32, addrspace=6), of_a + step,
                build(b, leading_byte_offset=N * 16, stride_byte_offset=128, layout=form),
                prims.Tcgen05InstrDesc.build(cute.Float32, cute.Float16, cute.Float16, n_dim=N, m_dim=M), False,
            )  # fmt: skip
        prims.tcgen05_commit(bar)
    cute.arch.mbarrier_wait(bar.pointer.address, 0)
    if cute.const_expr(fenced):
        prims.tcgen05_fence(prims.Tcgen05Fence.AFTER_THREAD_SYNC)
    store_rows(D, tile, slot[0], N)


@cute.kernel
def moved(A: cute.Tensor, B: cute.Tensor, dtype: cute.Constexpr) -> None:
    """A warp stores numbers to tensor memory, and loads them again."""
    t, _, _ = cute.arch.thread_idx()
    slot = Array(cute.Int32, 1, SMEM)
    prims.tcgen05_alloc(slot, 32)
    cute.arch.barrier()
    cells = prims.make_tmem_ptr(slot[0], dtype)
    prims.tcgen05_st("32x32b", cells, A[t, None].load())
    prims.tcgen05_wait(prims.Tcgen05Wait.STORE)
    B[t, None].store(prims.tcgen05_ld(prims.Tcgen05LdStShape.SHAPE_32X32B, cells, num=16 * dtype.bits // 32))
    prims.tcgen05_wait(prims.Tcgen05Wait.LOAD)
    prims.tcgen05_dealloc(cells, 32)


def operands() -> tuple[Any, Any, Any]:
    chance = np.random.default_rng(3)
    a, b = (chance.standard_normal((rows, K)).astype(np.float16) for rows in (M, N))
    return a, b, np.zeros((M, N), np.float32)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("stage", ["cute", "instr", "ptx"])
def test_a_multiplication(stage: str) -> None:
    a, b, d = operands()
    multiply(a, b, d, True).launch(grid=1, block=M, device="sim", stage=stage)
    assert np.allclose(d, a.astype(np.float32) @ b.T.astype(np.float32), atol=1e-4)


def test_a_missing_fence_is_found_unless_any_synchronisation_is_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b, d = operands()
    with pytest.raises(TilefoldError, match=r"E3263.*without a tcgen05 fence in between"):
        multiply(a, b, d, False).launch(grid=1, block=M, device="sim")
    monkeypatch.setenv("TILEFOLD_SIM_TCGEN05_FENCES", "0")
    multiply(a, b, d, False).launch(grid=1, block=M, device="sim")
    assert np.allclose(d, a.astype(np.float32) @ b.T.astype(np.float32), atol=1e-4)


@pytest.mark.parametrize("dtype", [cute.Float32, cute.Float16, cute.Int32], ids=str)
def test_registers_go_to_tensor_memory_and_back(dtype: Any) -> None:
    kind = {32: np.float32, 16: np.float16}[dtype.bits] if dtype is not cute.Int32 else np.int32
    given = np.arange(32 * 16).reshape(32, 16).astype(kind)
    result = np.zeros_like(given)
    moved(given, result, dtype).launch(grid=1, block=32, device="sim")
    assert np.array_equal(result, given)


def test_another_pointer_is_refused() -> None:
    @cute.kernel
    def wrong(A: cute.Tensor) -> None:
        prims.tcgen05_ld("32x32b", A.iterator)

    with pytest.raises(TilefoldError, match="expected an address in tensor memory, got Pointer"):
        wrong(np.zeros(32, np.float32)).launch(grid=1, block=32, device="sim")


@pytest.mark.parametrize("stage", ["cute", "instr"])
def test_stages_of_a_tile_that_the_run_counts(stage: str) -> None:
    """The last mode of a tensor in tensor memory may have an extent that is known only at run time."""

    @cute.kernel
    def kernel(A: cute.Tensor, B: cute.Tensor, stages: cute.Int32) -> None:
        t, _, _ = cute.arch.thread_idx()
        slot = cute.make_smem_tensor(1, cute.Int32)
        if cute.arch.warp_idx() == 0:
            cute.arch.alloc_tmem(64, slot.iterator)
        cute.arch.barrier()
        start = cute.arch.retrieve_tmem_ptr(cute.Float32, 16, slot.iterator)
        acc = cute.make_tensor(start, cute.make_layout((M, 16, stages), stride=(65536, 1, 16)))
        store = cute.make_copy_atom(tcgen05.St32x32bOp(tcgen05.Repetition.x16), cute.Float32)
        load = cute.make_copy_atom(tcgen05.Ld32x32bOp(tcgen05.Repetition.x16), cute.Float32)
        tiles = tcgen05.make_tmem_copy(store, acc[None, None, 0]), tcgen05.make_tmem_copy(load, acc[None, None, 0])
        rows = tiles[0].get_slice(t).partition_S(cute.make_identity_tensor((M, 16)))
        held = cute.make_rmem_tensor(rows.shape, cute.Float32)
        for i in cute.range(stages):
            held.fill(A[t] * (i + 1))
            cute.copy(tiles[0], held, tiles[0].get_slice(t).partition_D(acc[None, None, i]))
            cute.arch.fence_view_async_tmem_store()
        cute.copy(tiles[1], tiles[1].get_slice(t).partition_S(acc[None, None, stages - 1]), held)
        cute.arch.fence_view_async_tmem_load()
        B[t] = held[3]
        prims.tcgen05_fence(prims.Tcgen05Fence.BEFORE_THREAD_SYNC)
        cute.arch.barrier()
        if cute.arch.warp_idx() == 0:
            cute.arch.dealloc_tmem(start, 64)

    a, b = np.arange(M, dtype=np.float32), np.zeros(M, np.float32)
    kernel(a, b, 3).launch(grid=1, block=M, device="sim", stage=stage)
    assert np.array_equal(b, 3 * a)
