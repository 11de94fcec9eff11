# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Predicated copies by cp.async write zeros where predicates do not hold, as programs that do not clear memory need."""

from typing import Any

import numpy as np
import pytest
from tilefold.base.errors import TilefoldError

from tilefold import cute
from tilefold.cute.nvgpu import LoadCacheMode, cpasync

A = np.arange(1, 257, dtype=np.float32).reshape(32, 8)


@pytest.mark.parametrize("stage", ["atoms", "instr"])
@pytest.mark.parametrize(("zfill", "elsewhere"), [(None, 0.0), (False, 7.0), (True, 0.0)])
@pytest.mark.parametrize("whole", [True, False])
def test_zeros_are_written(zfill: bool | None, elsewhere: float, whole: bool, stage: str) -> None:
    @cute.kernel
    def kernel(A: cute.Tensor, out: cute.Tensor, zfill: cute.Constexpr):
        t, _, _ = cute.arch.thread_idx()
        op = cpasync.CopyG2SOp(LoadCacheMode.ALWAYS, zfill)
        atom = cute.make_copy_atom(op, cute.Float32, num_bits_per_copy=64)
        tiled = cute.make_tiled_copy_tv(atom, cute.make_layout((32, 1)), cute.make_layout((1, 4)))
        shared = cute.make_smem_tensor(cute.make_layout((32, 8), stride=(8, 1)), cute.Float32)
        part, target = tiled.get_slice(t).partition_S(A), tiled.get_slice(t).partition_D(shared)
        target.fill(7.0)
        shape: Any = (2, 1, 2) if not whole else part.shape  # one for each execution of the atom, or for each value
        pred = cute.make_rmem_tensor(shape, cute.Boolean)
        pred.fill(t < 5)
        cute.copy(tiled, part, target, pred=pred)
        cute.arch.cp_async_commit_group()
        cute.arch.cp_async_wait_group(0)
        for i in range(8):
            out[t, i] = shared[t, i]

    out = np.zeros_like(A)
    kernel(A, out, zfill).launch(grid=1, block=32, device="sim", stage=stage)
    assert out.tolist() == np.where(np.arange(32)[:, None] < 5, A, elsewhere).tolist()


def test_an_atom_narrower_than_a_part() -> None:
    @cute.kernel
    def kernel(A: cute.Tensor, out: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        wide = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), cute.Float32, num_bits_per_copy=128)
        tiled = cute.make_tiled_copy(wide, cute.make_layout((32, 8), stride=(1, 32)), (32, 8))
        part = tiled.get_slice(t).partition_S(A)
        narrow = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), cute.Float32, num_bits_per_copy=64)
        pred = cute.make_rmem_tensor((1, 1, 1), cute.Boolean)
        pred.fill(t < 5)
        row = cute.make_rmem_tensor_like(part)
        row.fill(0.0)
        cute.copy(narrow, cute.make_tensor(part.iterator, cute.make_layout((8, 1, 1))), row, pred=pred)
        cute.autovec_copy(row, out[t, None])  # of different ranks

    out = np.ones_like(A)
    kernel(A, out).launch(grid=1, block=32, device="sim")
    assert out.tolist() == np.where(np.arange(32)[:, None] < 5, A, 0).tolist()


@pytest.mark.parametrize(
    "shape",
    [(4, 2), (1, 4, 1), (1, 1, 1), (3, 4, 2)],
    ids=["a mode less", "one for the last mode", "one for all", "the first of three"],
)
def test_predicates_coarser_than_the_copy(shape: tuple[int, ...]) -> None:
    """CuTe's copy_if counts through all modes but the first together, and takes the first predicate of mode 0."""

    @cute.kernel
    def kernel(A: cute.Tensor, out: cute.Tensor, shape: cute.Constexpr):
        t, _, _ = cute.arch.thread_idx()
        atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), cute.Float32, num_bits_per_copy=64)
        tiled = cute.make_tiled_copy_tv(atom, cute.make_layout((8, 2), stride=(2, 1)), cute.make_layout((1, 2)))
        part, target = tiled.get_slice(t).partition_S(A), tiled.get_slice(t).partition_D(out)  # ((2,1),4,2)
        flags = cute.make_rmem_tensor(shape, cute.Boolean)
        flags.fill(t < 6)
        cute.copy(tiled, part, target, pred=flags)

    out = np.zeros_like(A)
    kernel(A, out, shape).launch(grid=1, block=16, device="sim")
    assert out.tolist() == np.where(np.arange(32)[:, None] % 8 < 3, A, 0).tolist()


def test_predicates_that_fit_no_copy() -> None:
    @cute.kernel
    def kernel(A: cute.Tensor, out: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), cute.Float32, num_bits_per_copy=32)
        tiled = cute.make_tiled_copy_tv(atom, cute.make_layout((8, 1)), cute.make_layout((1, 4)))  # ((1,4),4,2)
        flags = cute.make_rmem_tensor(((1, 2), 4, 2), cute.Boolean)
        flags.fill(True)
        cute.copy(tiled, tiled.get_slice(t).partition_S(A), tiled.get_slice(t).partition_D(out), pred=flags)

    with pytest.raises(TilefoldError, match=r"E0316.*mode 0 has 2 predicates for 4 elements"):
        kernel(A, np.zeros_like(A)).launch(grid=1, block=8, device="sim")


def test_a_predicate_for_each_row_of_a_part() -> None:
    @cute.kernel
    def kernel(A: cute.Tensor, out: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), cute.Float32)  # moves one element, or several
        part = cute.make_tensor(A.iterator + 4 * t, cute.make_layout(((4, 2),), stride=((1, 8),)))
        pred = cute.make_rmem_tensor((2, (1,)), cute.Boolean)  # the mode of one element does not count
        pred[0], pred[1] = t == 0, t == 1
        row = cute.make_rmem_tensor_like(part)
        row.fill(0.0)
        cute.copy(atom, part, row, pred=pred)
        cute.copy(atom, row, cute.make_tensor(out.iterator + 4 * t, part.layout))

    out = np.ones(16, np.float32)
    kernel(A[:2].copy(), out).launch(grid=1, block=2, device="sim")
    assert out.tolist() == [1, 2, 3, 4, *[0] * 8, 13, 14, 15, 16]
