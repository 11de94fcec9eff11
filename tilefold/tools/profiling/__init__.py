# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The costs of kernels by the lines of their source: as simulated, and as measured on a GPU."""
