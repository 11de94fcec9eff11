# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The kernels of "4 Ways to Do CuTe Copy" (Yang Yifan, yang-yifan.github.io), statement by statement as there.

Only the imports and the comments are not the article's: kernels from the literature are to work as they are.
"""

import tilefold as cutlass
from tilefold import cute

# pyright: basic
# fmt: off
# ruff: noqa: E501, F841 - lines and names are the article's


@cute.kernel
def cute_copy_kernel_1(
    mA: cute.Tensor,
    CTA_M: cutlass.Constexpr,
    CTA_K: cutlass.Constexpr,
    NUM_VAL_PER_THREAD: cutlass.Constexpr,
):
    tidx, _, _ = cute.arch.thread_idx()

    NUM_THREAD_PER_ROW = CTA_K // NUM_VAL_PER_THREAD

    m_idx = tidx // NUM_THREAD_PER_ROW
    k_idx = (tidx % NUM_THREAD_PER_ROW) * NUM_VAL_PER_THREAD

    rA = cute.make_rmem_tensor((NUM_VAL_PER_THREAD), dtype=mA.element_type)

    for i in cutlass.range(NUM_VAL_PER_THREAD):
        rA[i] = mA[m_idx, k_idx + i]

    if tidx == 1:
        cute.print_tensor(rA)


@cute.kernel
def cute_copy_kernel_2(
    mA: cute.Tensor,
    CTA_M: cutlass.Constexpr,
    CTA_K: cutlass.Constexpr,
    NUM_VAL_PER_THREAD: cutlass.Constexpr,
):
    tidx, _, _ = cute.arch.thread_idx()

    gA = cute.local_tile(mA, (CTA_M, CTA_K), (0, 0))

    NUM_THREAD_PER_ROW = CTA_K // NUM_VAL_PER_THREAD

    tAgA = cute.flat_divide(gA, (1, NUM_VAL_PER_THREAD))
    tAgA_layout = cute.select(tAgA.layout, [0, 1, 3, 2])
    tAgA = cute.make_tensor(tAgA.iterator, tAgA_layout)
    tAgA = cute.group_modes(tAgA, 2, 4)
    tAgA = tAgA[0, None, tidx]

    rA = cute.make_rmem_tensor((NUM_VAL_PER_THREAD), dtype=mA.element_type)

    cute.basic_copy(tAgA, rA)

    if tidx == 1:
        cute.print_tensor(rA)


@cute.kernel
def cute_copy_kernel_3(
    mA: cute.Tensor,
    CTA_M: cutlass.Constexpr,
    CTA_K: cutlass.Constexpr,
    NUM_VAL_PER_THREAD: cutlass.Constexpr,
):
    tidx, _, _ = cute.arch.thread_idx()

    gA = cute.local_tile(mA, (CTA_M, CTA_K), (0, 0))

    NUM_THREAD_PER_ROW = CTA_K // NUM_VAL_PER_THREAD

    TV_layout = cute.make_layout(((NUM_THREAD_PER_ROW, CTA_M), NUM_VAL_PER_THREAD), stride=((CTA_M * NUM_VAL_PER_THREAD, 1), CTA_M))
    tAgA = cute.composition(gA, TV_layout)
    tAgA = tAgA[tidx, None]

    rA = cute.make_rmem_tensor((NUM_VAL_PER_THREAD), dtype=mA.element_type)

    cute.basic_copy(tAgA, rA)

    if tidx == 1:
        cute.print_tensor(rA)


@cute.kernel
def cute_copy_kernel_4(
    mA: cute.Tensor,
    CTA_M: cutlass.Constexpr,
    CTA_K: cutlass.Constexpr,
    NUM_VAL_PER_THREAD: cutlass.Constexpr,
):
    tidx, _, _ = cute.arch.thread_idx()

    gA = cute.local_tile(mA, (CTA_M, CTA_K), (0, 0))

    NUM_THREAD_PER_ROW = CTA_K // NUM_VAL_PER_THREAD

    TV_layout = cute.make_layout(((NUM_THREAD_PER_ROW, CTA_M), NUM_VAL_PER_THREAD), stride=((CTA_M * NUM_VAL_PER_THREAD, 1), CTA_M))

    copy_atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), mA.element_type)
    tiled_copy = cute.make_tiled_copy(copy_atom, TV_layout, (CTA_M, CTA_K))
    thr_copy = tiled_copy.get_slice(tidx)

    tAgA = thr_copy.partition_S(gA)
    tArA = thr_copy.partition_D(gA)

    rA = cute.make_rmem_tensor_like(tArA)

    cute.copy(tiled_copy, tAgA, rA)

    if tidx == 1:
        cute.print_tensor(rA)


KERNELS = (cute_copy_kernel_1, cute_copy_kernel_2, cute_copy_kernel_3, cute_copy_kernel_4)
