# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of PTX as text: reading it, and running it on the simulator."""
