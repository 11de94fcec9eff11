# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Atoms on the simulator: one execution by the atom's table."""
