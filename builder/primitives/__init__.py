# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pointers, arrays and single instructions: kernels below layouts (the primitives of CuTe's Python programs)."""
