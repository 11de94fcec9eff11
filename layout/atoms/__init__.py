# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Atoms: what one instruction moves or multiplies, thread by thread and value by value."""
