# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""C = A @ B^T in f32 by ordinary arithmetic: tiled copies, a tiled MMA of fused multiply-adds, padded shared memory.

A is M x K and B is N x K, contiguous along M and N, and so is C. It is the kernel with which the articles on matrix
multiplication in CuTe end: each tile goes from global memory to registers and from there to shared memory, and the next
one is loaded while this one is multiplied. The copies, the MMA and the layouts are made outside the kernel and are
its parameters. examples/sgemm.cute is the same in `.cute` text.

    python examples/python/sgemm.py
    python examples/python/sgemm.py --device cuda --m 2048 --n 2048 --k 256
"""

import numpy as np
from common import Array, check, chosen, normal, parser, place

from tilefold import cute


@cute.kernel
def matmul_kernel(
    mA: cute.Tensor,
    sA_layout: cute.Constexpr[cute.Layout],
    copy_A: cute.Constexpr[cute.TiledCopy],
    mB: cute.Tensor,
    sB_layout: cute.Constexpr[cute.Layout],
    copy_B: cute.Constexpr[cute.TiledCopy],
    mC: cute.Tensor,
    mma_C: cute.Constexpr[cute.TiledMma],
):
    t, _, _ = cute.arch.thread_idx()
    m, n, _ = cute.arch.block_idx()
    sA = cute.make_smem_tensor(sA_layout, mA.element_type)
    sB = cute.make_smem_tensor(sB_layout, mB.element_type)
    bM, bK = cute.size(sA_layout, 0), cute.size(sA_layout, 1)
    bN = cute.size(sB_layout, 0)
    gA = cute.local_tile(mA, (bM, bK), (m, None))  # (bM,bK,k)
    gB = cute.local_tile(mB, (bN, bK), (n, None))  # (bN,bK,k)
    gC = cute.local_tile(mC, (bM, bN), (m, n))  # (bM,bN)

    # copy partition
    thr_copy_a = copy_A.get_slice(t)
    tAgA = thr_copy_a.partition_S(gA)  # (CPY,CPY_M,CPY_K,k)
    tAsA = thr_copy_a.partition_D(sA)  # (CPY,CPY_M,CPY_K)
    tArA = cute.make_fragment_like(tAsA)
    thr_copy_b = copy_B.get_slice(t)
    tBgB = thr_copy_b.partition_S(gB)
    tBsB = thr_copy_b.partition_D(sB)
    tBrB = cute.make_fragment_like(tBsB)

    # mma partition
    thr_mma = mma_C.get_slice(t)
    tCsA = thr_mma.partition_A(sA)  # (MMA,MMA_M,MMA_K)
    tCsB = thr_mma.partition_B(sB)  # (MMA,MMA_N,MMA_K)
    tCgC = thr_mma.partition_C(gC)  # (MMA,MMA_M,MMA_N)
    tCrC = thr_mma.make_fragment_C(tCgC)
    tCrC.fill(0.0)

    # overlap copy and compute
    cute.copy(copy_A, tAgA[None, None, None, 0], tArA)
    cute.copy(copy_B, tBgB[None, None, None, 0], tBrB)
    k_max = cute.size(tAgA, 3)
    for k in cute.range(k_max):
        cute.arch.sync_threads()
        cute.copy(copy_A, tArA, tAsA)
        cute.copy(copy_B, tBrB, tBsB)
        cute.arch.sync_threads()

        # load the next tile
        k_next = k + 1 if k + 1 < k_max else k
        cute.copy(copy_A, tAgA[None, None, None, k_next], tArA)
        cute.copy(copy_B, tBgB[None, None, None, k_next], tBrB)
        cute.gemm(mma_C, tCrC, tCsA, tCsB, tCrC)
    cute.autovec_copy(tCrC, tCgC)


def matmul(A: Array, B: Array, C: Array, tile: int = 64, bK: int = 16, device: str = "auto") -> None:
    """C = A @ B^T by 256 threads for each tile of `tile` x `tile`."""
    # rows of shared memory are padded by 16 bytes, so that writes do not conflict
    layout = cute.make_layout((tile, bK), stride=(1, tile + 4))
    atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), cute.Float32, num_bits_per_copy=128)
    copy = cute.make_tiled_copy_tv(atom, cute.make_layout((tile // 4, 1024 // tile)), cute.make_layout((4, 1)))
    # each thread multiplies four neighbours along M and N at a time
    four = cute.make_layout((16, 4), stride=(4, 1))
    mma = cute.make_tiled_mma(cute.nvgpu.MmaUniversalOp(cute.Float32), (16, 16, 1), (four, four, None))
    grid = (A.shape[0] // tile, B.shape[0] // tile, 1)
    kernel = matmul_kernel(A, layout, copy, B, layout, copy, C, mma)
    kernel.launch(grid=grid, block=(mma.threads, 1, 1), device=device)


def main(arguments: list[str] | None = None) -> None:
    options = parser("C = A @ B^T by ordinary arithmetic", m=128, n=64, k=64).parse_args(arguments)
    device = chosen(options.device)
    hA, hB = normal(0, (options.k, options.m), np.float32), normal(1, (options.k, options.n), np.float32)
    A, B, C = place(device, hA, hB, np.empty((options.n, options.m), np.float32))
    matmul(A.T, B.T, C.T, device=device)
    check("C", C.T, hA.T @ hB, rtol=1e-5, atol=1e-4)


if __name__ == "__main__":
    main()
