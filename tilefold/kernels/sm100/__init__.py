# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels for sm_100a, with sums in tensor memory. No GPU of this kind has run them."""
