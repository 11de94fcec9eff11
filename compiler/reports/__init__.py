# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reports: the decisions of the compiler, and the costs of a kernel."""
