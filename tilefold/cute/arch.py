# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`cute.arch`: what a thread knows of itself, and the instructions of a GPU by name."""

from tilefold.compiler.builder.arch import block_dim, block_idx, grid_dim, thread_idx

__all__ = ["block_dim", "block_idx", "grid_dim", "thread_idx"]
