# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""By dialect the operations that programs write by name."""
