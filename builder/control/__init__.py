# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Control flow: Python's statements as branches and loops of the kernel."""
