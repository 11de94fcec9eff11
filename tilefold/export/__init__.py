# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels for programs in C and C++."""
