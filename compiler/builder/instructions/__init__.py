# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a thread does by single instructions: coordinates, barriers, atomics, exchanges, printing."""
