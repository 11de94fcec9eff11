# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Analyses: facts that passes and reports find in a program without changing it."""
