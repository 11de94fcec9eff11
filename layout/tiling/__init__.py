# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tiles: cutting a tensor for blocks and threads, tiled copies, tiled MMAs (CuTe's copy_atom.hpp and mma_atom.hpp)."""
