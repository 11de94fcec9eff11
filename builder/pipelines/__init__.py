# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pipelines between producers and consumers, and schedulers of tiles, out of instructions and control flow."""
