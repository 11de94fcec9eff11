# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of the tools for agents."""
