# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The public CuTe IR's route to LLVM IR: the `llvm` dialect as text, and binaries of `gpu` modules."""
