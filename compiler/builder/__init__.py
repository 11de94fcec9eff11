# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Building kernels from Python: values, tensors and algorithms that write the operations of a kernel being built."""
