# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiled kernels: machine code with the facts that a launch needs, and the cache on disk."""
