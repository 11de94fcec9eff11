# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The compiler: text to verified IR, the pipeline of passes, LLVM IR, PTX, machine code, and reports."""
