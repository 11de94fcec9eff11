# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The back end: LLVM IR to PTX, PTX to machine code."""
