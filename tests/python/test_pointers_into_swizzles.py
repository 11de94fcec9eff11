# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensors made from pointers into swizzled shared memory, and views of memory that reach beyond it."""

import numpy as np

from tilefold import cute
from tilefold.cute.kernel import Kernel

SWIZZLED = cute.make_composed_layout(cute.make_swizzle(3, 3, 3), 0, cute.make_layout((64, 8, 2), stride=(1, 64, 512)))
STAGE = cute.make_composed_layout(cute.make_swizzle(3, 3, 3), 0, cute.make_layout((64, 8), stride=(1, 64)))


def _check_counts(kernel: Kernel) -> None:
    """The kernel writes 0 to 511 to a matrix of 8 rows."""
    out = np.zeros((8, 64), np.float16)
    kernel(out).launch(grid=1, block=64, device="sim")
    np.testing.assert_array_equal(out.reshape(-1), np.arange(512))


def test_a_tensor_at_a_slice_of_a_swizzled_one_is_swizzled() -> None:
    @cute.kernel
    def kernel(out: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        s = cute.make_smem_tensor(SWIZZLED, cute.Float16, 1024)
        for stage in cute.range(2):
            made = cute.make_tensor(s[None, None, stage].iterator, cute.make_layout((8, 64), stride=(64, 1)))
            for row in cute.range(8):
                made[row, t] = cute.Float16(stage * 1000 + row * 64 + t)
        for row in cute.range(8):
            for stage in cute.range(2):
                out[stage, row, t] = s[t, row, stage]

    out = np.zeros((2, 8, 64), np.float16)
    kernel(out).launch(grid=1, block=64, device="sim")
    np.testing.assert_array_equal(out.reshape(2, -1), np.arange(512) + np.array([[0], [1000]]))


def test_stages_beyond_the_memory_may_stay_unused() -> None:
    @cute.kernel
    def kernel(out: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        s = cute.make_smem_tensor(STAGE, cute.Float16, 1024)
        made = cute.make_tensor(s.iterator, SWIZZLED)
        for row in cute.range(8):
            made[t, row, 0] = cute.Float16(row * 64 + t)
        for row in cute.range(8):
            out[row, t] = s[t, row]

    _check_counts(kernel)


def test_a_cotiled_copy_counts_elements_before_their_addresses_are_swizzled() -> None:
    @cute.kernel
    def kernel(out: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        s = cute.make_smem_tensor(STAGE, cute.Float16, 1024)
        atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), cute.Float16, num_bits_per_copy=128)
        part = cute.make_cotiled_copy(atom, cute.make_layout((64, 8), stride=(8, 1)), s.layout).get_slice(t)
        x = cute.make_rmem_tensor_like(part.partition_D(s))
        for i in cute.range(8, unroll_full=True):
            x[i] = cute.Float16(t * 8 + i)
        cute.copy(part, x, part.partition_D(s))
        cute.arch.sync_threads()
        for row in cute.range(8):
            out[row, t] = s[t, row]

    _check_counts(kernel)


def test_bytes_are_recast_to_wider_elements() -> None:
    @cute.kernel
    def kernel(x: cute.Tensor, out: cute.Tensor):
        t, _, _ = cute.arch.thread_idx()
        wide = cute.make_tensor(cute.recast_ptr(x.iterator, dtype=cute.Uint16), cute.make_layout(8))
        out[t] = wide[t]

    x, out = np.arange(16, dtype=np.uint8), np.zeros(8, np.uint16)
    kernel(cute.dynamic(x, align=1), out).launch(grid=1, block=8, device="sim")
    np.testing.assert_array_equal(out, x.view(np.uint16))
