# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Finds the pass that changes what a program does: runs the program after each pass, and compares."""
