# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels in exact arithmetic: bit patterns that stand for exact numbers, and the rules that compute with these."""
