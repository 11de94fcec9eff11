# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels for Hopper (sm_90a): TMA copies, wgmma, clusters."""
