# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Copies by the tensor memory accelerator (TMA): tensor maps, their derivation from layouts, partitions, multicast."""
