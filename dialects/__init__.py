# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The IR: xDSL dialects from layouts (cute) and tensors (tile) to PTX instructions, and how a file runs (run)."""
