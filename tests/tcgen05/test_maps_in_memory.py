# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensor maps of tensors whose addresses a kernel reads, which TMA copies of `cute.experimental` make by themselves."""

from typing import Any

import numpy as np
import pytest
from tilefold.base.errors import TilefoldError

from tilefold import cute
from tilefold.cute import experimental as ext
from tilefold.cute.experimental import QueryDeviceWorkspaceFunc
from tilefold.cute.nvgpu import tcgen05
from tilefold.cute.utils import blackwell_helpers as sm100

TILE = (128, 64, 64)
BATCHES, DEPTH, STAGES = 4, 96, 2
F16, F32 = cute.Float16, cute.Float32
K_MAJOR, KIND = tcgen05.OperandMajorMode.K, ext.OperationTypeEnum
MMA, LOAD, THREADS = 4, 5, 192


@cute.jit
def at(address: Any, shape: Any) -> Any:
    pointer = cute.make_ptr(F16, address, mem_space=cute.AddressSpace.gmem, assumed_align=16)
    return cute.make_tensor(pointer, cute.make_layout(shape, stride=(shape[1], 1, 0)))


@ext.kernel
def products(mA: cute.Tensor, mB: cute.Tensor, mD: cute.Tensor, is_early: cute.Constexpr[bool] = False) -> None:
    """D = A B for the addresses of several matrices each."""
    warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
    mma = sm100.make_trivial_tiled_mma(F16, F16, K_MAJOR, K_MAJOR, F32, tcgen05.CtaGroup.ONE, TILE[:2])
    smem = cute.AddressSpace.smem
    sA = ext.allocate(F16, smem, sm100.make_smem_layout_a(mma, TILE, F16, STAGES), alignment=1024)
    sB = ext.allocate(F16, smem, sm100.make_smem_layout_b(mma, TILE, F16, STAGES), alignment=1024)
    acc = ext.allocate(F32, cute.AddressSpace.tmem, ext.make_tmem_layout_acc(mma, TILE, 2))
    main = ext.TMAToUMMAPipeline.create(num_stages=STAGES, mma_operation_type=KIND.SM100_MMA_1SM_SS)
    sums = ext.UMMAtoAsyncPipeline.create(num_stages=2, consumer=KIND.SM100_COPY_T2R, consumer_arv_count=128)
    stores = ext.TMAStorePipeline(stages=2, arv_count=128, barrier_id=1, tma_warp_id=0)
    count = cute.ceil_div(DEPTH, TILE[2])
    tA = at(mA[0], (TILE[0], DEPTH, 1))
    for batch in range(BATCHES):
        if warp == LOAD:
            if cute.const_expr(not is_early):
                tA = at(mA[batch], (TILE[0], DEPTH, 1))
            tB = at(mB[batch], (TILE[1], DEPTH, 1))
            gA = cute.zipped_divide(tA, (TILE[0], TILE[2]))[(None, None), (0, None, 0)]
            gB = cute.zipped_divide(tB, (TILE[1], TILE[2]))[(None, None), (0, None, 0)]
            for k in range(count):
                token, stage = main.producer_acquire_and_get_stage()
                bar = ext.get_mbarrier(token)
                values = ext.get_cta_v_map_ab(tA, TILE, mma, "A")
                ext.tma_load(gA[None, None, k], sA[None, None, None, stage], bar, cta_v_map=values)
                values = ext.get_cta_v_map_ab(tB, TILE, mma, "B")
                ext.tma_load(gB[None, None, k], sB[None, None, None, stage], bar, cta_v_map=values)
                main.producer_commit_and_advance()
        if warp == MMA:
            _, stage = sums.producer_acquire_and_get_stage()
            main, _ = ext.mainloop_mma(mma, sA, sB, acc[None, None, None, stage], 0, count, 4, main, main)
            sums.producer_commit_and_advance()
        if warp < MMA:
            tD = at(mD[batch], (TILE[0], TILE[1], 1))
            _, stage = sums.consumer_wait_and_get_stage()
            part = acc[(None, None), 0, 0, stage]
            stores = ext.epilogue_tma_store(TILE, False, part, tD, (0, 0, 0), stores, 0, lambda x: x + 1.0)
            sums.consumer_release_and_advance()


def compiled(stage: str, arrays: Any) -> Any:
    @cute.jit
    def launch(A: cute.Tensor, B: cute.Tensor, D: cute.Tensor) -> None:
        whole = at(D[0], (TILE[0], TILE[1], 1))  # its extents are known, though not its address
        grid = cute.ceil_div(whole.shape[0], TILE[0])
        products(A, B, D).launch(grid=grid, block=THREADS, device="sim", stage=stage)

    return ext.compile(launch, *arrays)


def addresses(*matrices: Any) -> Any:
    for matrix in matrices:
        cute.runtime.from_dlpack(matrix)
    return np.array([matrix.ctypes.data for matrix in matrices], np.int64)


def workspace(bytes: int) -> Any:
    return np.zeros(bytes, np.uint8)


@pytest.fixture
def matrices() -> Any:
    chance = np.random.default_rng(3)
    extents = ((TILE[0], DEPTH), (TILE[1], DEPTH), TILE[:2])
    return [[chance.integers(-2, 3, shape).astype(np.float16) for _ in range(BATCHES)] for shape in extents]


@pytest.mark.parametrize("stage", ["atoms", "ptx"])
def test_products_of_matrices_by_their_addresses(matrices: Any, stage: str) -> None:
    A, B, D = matrices
    given = [addresses(*each) for each in matrices]
    function = compiled(stage, given)
    size = function.get_aux_func(QueryDeviceWorkspaceFunc, kernel=products)(*given).size_in_bytes
    assert size > 0
    assert size % 128 == 0
    function(*given, workspace(size))
    for a, b, d in zip(A, B, D, strict=True):
        assert np.array_equal(d, a.astype(np.float32) @ b.astype(np.float32).T + 1)
    wrong = (
        (workspace(size - 128), "has"),
        (workspace(size)[1:], "multiple of 128"),
        (given[0], "contiguous array of bytes"),
    )
    for memory, problem in wrong:
        with pytest.raises(TilefoldError, match=problem) as caught:
            function(*given, memory)
        assert caught.value.code == "E3106"


def test_maps_take_a_workspace_and_a_warp(matrices: Any) -> None:
    given = [addresses(*each) for each in matrices]
    with pytest.raises(TilefoldError, match="memory that a compiled function is given") as caught:
        products(*given).launch(grid=1, block=THREADS, device="sim")
    assert caught.value.code == "E5002"

    @cute.jit
    def launch(A: cute.Tensor, B: cute.Tensor, D: cute.Tensor) -> None:
        products(A, B, D, True).launch(grid=1, block=THREADS, device="sim")

    with pytest.raises(TilefoldError, match="each warp would write the tensor map") as caught:
        ext.compile(launch, *given)
    assert caught.value.code == "E5002"
