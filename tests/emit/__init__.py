# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of emission: LLVM IR text, PTX, machine code, reports."""
