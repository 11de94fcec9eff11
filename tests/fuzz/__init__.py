# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random kernels, executed at every stage, as emitted LLVM IR on the CPU, and on a GPU."""
