# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arrays as arguments: those of other libraries, their types, and how layouts place their elements."""
