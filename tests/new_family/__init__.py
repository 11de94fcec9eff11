# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A made-up family of targets, brought by a package: its memory, its instructions, and kernels that use them."""
