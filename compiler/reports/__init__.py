# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reports: what the compiler decided, and what a kernel costs."""
