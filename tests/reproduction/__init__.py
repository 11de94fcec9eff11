# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Folders that repeat a failure."""
