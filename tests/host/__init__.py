# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of programs that begin on the host, and of `cute` values while they run."""
