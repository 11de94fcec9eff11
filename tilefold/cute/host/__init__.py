# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions of the host: their arguments, the kernels that they launch, and the compiled form of both."""
