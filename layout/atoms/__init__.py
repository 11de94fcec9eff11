# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Atoms: the data that one instruction moves or multiplies, by thread and value."""
