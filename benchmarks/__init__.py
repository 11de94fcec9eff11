# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The project's figures: kernels against their peers on a GPU, and the time that compiler and simulator take."""
