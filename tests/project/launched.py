# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A small kernel, which a process of a test launches."""

from tilefold import cute


@cute.kernel
def scale(A: cute.Tensor, B: cute.Tensor):
    t = cute.arch.thread_idx()[0]
    if t < 100:
        B[t] = A[t] * 2.0
