# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensor copies of Hopper (TMA): tensor maps, their derivation from layouts, partitions and multicast."""
