# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The operations of an IR that CuTe programs write by name."""
