# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The simulator's memory: state spaces, the state of each byte, and the cost of accesses."""
