# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Accumulators of warpgroups to swizzled shared memory by stmatrix, part by part, by the calls of CuTe programs."""

from typing import Any

import numpy as np
import pytest

from tilefold import cute
from tilefold.cute.nvgpu import warp, warpgroup
from tilefold.cute.utils import LayoutEnum, hopper_helpers

COLUMNS = 32
"""The columns of a part."""


@cute.kernel
def epilogue(C: cute.Tensor, order: cute.Constexpr[Any], groups: cute.Constexpr[int], n: cute.Constexpr[int]):
    t, _, _ = cute.arch.thread_idx()
    K = warpgroup.OperandMajorMode.K
    f16, f32 = cute.Float16, cute.Float32
    mma = hopper_helpers.make_trivial_tiled_mma(f16, f16, K, K, f32, (groups, 1, 1), (64, n))
    thr = mma.get_slice(t)
    acc = cute.make_rmem_tensor(thr.partition_C(C).shape, f32)
    places = thr.partition_C(cute.make_identity_tensor((64 * groups, n)))
    for i in cute.range_constexpr(cute.size(acc)):
        row, column = places[i]
        acc[i] = f32(row * 2 + column)
    stored = cute.make_copy_atom(warp.StMatrix8x8x16bOp(order.is_m_major_c(), 4), f16)
    whole = cute.make_tiled_copy_C_atom(stored, mma)
    r2s = cute.make_tiled_copy_S(hopper_helpers.sm90_get_smem_store_op(order, f16, f32), whole)
    thr_r2s = r2s.get_slice(t)
    rows, parts = 64 * groups, n // COLUMNS
    sC = cute.make_smem_tensor(hopper_helpers.make_smem_layout_epi(f16, order, (rows, COLUMNS), parts), f16, 1024)
    tRS_sD, tRS_rAcc = thr_r2s.partition_D(sC), r2s.retile(acc)
    rD = cute.make_rmem_tensor_like(cute.make_layout(cute.shape(thr_r2s.partition_S(sC))[:3]), f16)
    for part in cute.range_constexpr(parts):
        for i in cute.range_constexpr(cute.size(rD)):
            rD[i] = tRS_rAcc[part * cute.size(rD) + i].to(f16)
        cute.copy(r2s, rD, tRS_sD[None, None, None, part])
    cute.arch.sync_threads()
    threads = cute.make_layout((32 * groups, 4), stride=(4, 1))
    for part in cute.range_constexpr(parts):
        gC = cute.local_tile(C, (rows, COLUMNS), (0, part))
        cute.autovec_copy(cute.local_partition(sC[None, None, part], threads, t), cute.local_partition(gC, threads, t))


@pytest.mark.parametrize("stage", ["cute", "instr"])
@pytest.mark.parametrize("order", LayoutEnum)
@pytest.mark.parametrize(("groups", "n"), [(1, 64), (2, 128)])
@pytest.mark.sampled(3)
def test_accumulators_reach_shared_memory(groups: int, n: int, order: LayoutEnum, stage: str) -> None:
    result = np.zeros((64 * groups, n), np.float16)
    epilogue(result, order, groups, n).launch(grid=1, block=128 * groups, device="sim", stage=stage)
    np.testing.assert_array_equal(result, np.add.outer(2 * np.arange(64 * groups), np.arange(n)))
