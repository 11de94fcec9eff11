# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Finds the pass that changes the behaviour of a program: runs the program after each pass, and compares."""
