# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Small kernels with a planted fault each, beside their corrected twins, and correct kernels that look faulty."""
