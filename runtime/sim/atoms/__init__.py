# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Atoms on the simulator: one execution of a copy or MMA atom, by the tables of `layout/atoms/`."""
