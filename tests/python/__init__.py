# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of kernels in Python: what they are built from, control flow, launches, the examples."""
