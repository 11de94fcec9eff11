# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Layouts, tiled copies and tiled MMAs as tables and pictures."""
