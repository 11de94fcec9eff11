# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Export: kernels as files for programs in C and C++."""
