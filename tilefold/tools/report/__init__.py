# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Everything about a program on one page: its source and code, passes, costs, faults and layouts."""
