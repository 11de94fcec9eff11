# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensor memory and the tensor core of tcgen05: the cells, who uses them in which order, and the arithmetic."""
