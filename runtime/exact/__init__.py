# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Exact arithmetic, by which results that should be equal are equal, and others are not (docs/simulator.md)."""
