# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of the CUDA engine: those marked `gpu` need a device and fail without one, the others need none."""
