# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensor memory of Blackwell: where matrices, operands and scale factors lie in it, and the copies that reach them."""
