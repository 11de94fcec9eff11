# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels below layouts: pointers, arrays and single instructions."""
