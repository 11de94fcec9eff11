# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of fills, checks and their expressions."""
