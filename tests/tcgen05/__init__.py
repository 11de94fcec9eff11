# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensor memory and tcgen05: a kernel with one multiplication, its results, its machine code and its mistakes."""
