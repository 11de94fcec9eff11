# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Stores of elements to swizzled shared memory become as wide as the elements that the swizzle keeps together."""

import re

import numpy as np
import pytest

from tilefold import cute

ROWS = 64


@cute.kernel
def fill_and_copy(A: cute.Tensor, row: cute.Constexpr[int | None]) -> None:
    t, _, _ = cute.arch.thread_idx()
    count = 128 // A.element_type.width  # of the elements in 16 bytes
    swizzle = cute.make_swizzle(3, count.bit_length() - 1, 3)
    plain = cute.make_layout((ROWS, 8 * count), stride=(8 * count, 1))
    s = cute.make_smem_tensor(cute.make_composed_layout(swizzle, 0, plain), A.element_type, alignment=1024)
    atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), A.element_type)
    tiled = cute.make_tiled_copy_tv(atom, cute.make_layout((16, 8), stride=(8, 1)), cute.make_layout((1, count)))
    own, to = tiled.get_slice(t).partition_D(s), tiled.get_slice(t).partition_D(A)
    own.fill(1.0)
    if row is not None:
        own[None, row, None].fill(2.0)
    cute.autovec_copy(own, to)


def _stores(dtype: type[np.generic], row: int | None = None) -> list[str]:
    A = np.zeros((ROWS, 8 * 16 // np.dtype(dtype).itemsize), dtype)
    fill_and_copy(A, row).launch(grid=1, block=128, device="sim")
    expected = np.ones_like(A)
    if row is not None:
        expected[16 * row : 16 * row + 16] = 2
    assert np.array_equal(A, expected)
    return re.findall(r"st\.shared\.(\S+)", fill_and_copy.ptx("sm_80"))


@pytest.mark.parametrize("dtype", [np.int8, np.float16, np.float32])
def test_a_fill_stores_sixteen_bytes_that_the_swizzle_keeps_together(dtype: type[np.generic]) -> None:
    assert _stores(dtype) == ["v4.b32"] * 4


def test_a_slice_of_whole_periods_away_has_the_same_base() -> None:
    assert _stores(np.float16, row=2) == ["v4.b32"] * 5
    assert fill_and_copy.ptx("sm_80").count("xor.b32") == 1
