# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The builder: values, tensors and control flow of Python that write the operations of a kernel."""
