# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A product of complex matrices by real ones, on views of the real and imaginary parts, as CuTe's C64 atoms compute."""

import numpy as np

from tilefold import cute


@cute.kernel
def zgemm(A: cute.Tensor, B: cute.Tensor, C: cute.Tensor):
    """C (M,N) += A (M,K) * B (N,K), each with a mode of real and imaginary parts at the end."""
    t, _, _ = cute.arch.thread_idx()
    mma = cute.make_tiled_mma("SM80_8x8x4_F64F64F64F64_TN", (1, 1, 1))
    part = mma.get_slice(t)
    (a_re, a_im), (b_re, b_im), (c_re, c_im) = [
        [split(tensor[None, None, i]) for i in range(2)]
        for tensor, split in ((A, part.partition_A), (B, part.partition_B), (C, part.partition_C))
    ]
    negated = mma.make_fragment_A(a_im)
    negated.store(-a_im.load())
    parts = [(mma.make_fragment_A(a_re), a_re), (mma.make_fragment_A(a_im), a_im)]
    others = [(mma.make_fragment_B(b_re), b_re), (mma.make_fragment_B(b_im), b_im)]
    sums = [(mma.make_fragment_C(c_re), c_re), (mma.make_fragment_C(c_im), c_im)]
    for fragment, source in (*parts, *others, *sums):
        cute.autovec_copy(source, fragment)
    (re, _), (im, _) = sums
    cute.gemm(mma, parts[0][0], others[0][0], re)
    cute.gemm(mma, parts[1][0], others[0][0], im)
    cute.gemm(mma, negated, others[1][0], re)
    cute.gemm(mma, parts[0][0], others[1][0], im)
    for fragment, target in sums:
        cute.autovec_copy(fragment, target)


def test_a_complex_product_is_four_real_ones() -> None:
    rng = np.random.default_rng(0)
    a, b, c = (rng.integers(-9, 9, (*shape, 2)).astype(np.float64) for shape in ((16, 8), (8, 8), (16, 8)))
    expected = a.view(np.complex128)[..., 0] @ b.view(np.complex128)[..., 0].T + c.view(np.complex128)[..., 0]
    zgemm(a, b, c).launch(grid=1, block=32, device="sim")
    assert np.array_equal(c.view(np.complex128)[..., 0], expected)
    assert zgemm.ptx("sm_80").count("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64") == 4 * 2 * 1 * 2
