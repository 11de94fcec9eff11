# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of costs by lines, of maps to machine code and back, and of reports."""
