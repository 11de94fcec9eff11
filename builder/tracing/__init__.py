# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tracing: from a function to a verified module, the kernel that is being built, and the user's lines."""
