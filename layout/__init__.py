# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""CuTe's layout algebra and atom tables in plain Python, without dependencies."""
