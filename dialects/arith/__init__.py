# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the integer operations of the dialect `arith` mean, for all that read them."""
