# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of the runtime: caches, arguments, launching."""
