# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiled kernels: what a launch must know of one, and the cache on disk."""
