# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tracing: the kernel that is being built, and the user's lines that its operations come from."""
