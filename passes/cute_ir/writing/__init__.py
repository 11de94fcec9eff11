# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writing IR for the passes of the public CuTe IR: signed integers, printing, and the `llvm` dialect."""
