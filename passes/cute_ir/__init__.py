# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The passes of the public CuTe IR: from its programs to kernels of `ptx`, or to the `llvm` dialect."""
