# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Folders that repeat a failure elsewhere: the program, its tensors, the options, and a script."""
