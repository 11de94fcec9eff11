# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The base of every layer: the catalogue of errors, the targets, and the occupancy of a multiprocessor."""
