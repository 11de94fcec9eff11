# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Shrinks a program that fails, while it fails in the same way."""
