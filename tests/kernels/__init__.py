# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of whole kernels: what the examples compute, compile to and cost."""
