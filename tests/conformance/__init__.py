# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The lit tests of the public CuTe IR, run with tilefold."""
