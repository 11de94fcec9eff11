# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of `tilefold check`: faulty kernels and their corrected twins."""
