# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Scalars of a kernel: their types, conversions, operators and functions."""
