# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The public CuTe IR's own route to LLVM IR, and its binaries."""
