# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Drawings: layouts, tiled copies and tiled MMAs as tables and pictures."""
