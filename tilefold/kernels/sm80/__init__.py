# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels for GPUs from sm_80 on: cp.async and mma.sync."""
