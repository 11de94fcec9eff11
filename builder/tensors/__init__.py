# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensors of a kernel: layouts, views, fragments, copies and matrix multiplications."""
