# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What every layer shares: the catalogue of errors, the targets, and how many blocks a multiprocessor holds."""
