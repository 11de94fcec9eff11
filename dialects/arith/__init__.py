# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The meaning of the integer operations of the dialect `arith`, for all their readers."""
