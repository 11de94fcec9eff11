# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The operations that programs write by name, by dialect."""
