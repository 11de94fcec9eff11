# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of the search for the pass that changes a program."""
