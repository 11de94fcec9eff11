# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of `tilefold layout` and of the expressions that it evaluates."""
