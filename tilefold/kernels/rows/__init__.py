# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels that memory limits: each row of a matrix is in the registers of some threads, and moves once."""
