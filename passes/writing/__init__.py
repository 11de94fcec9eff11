# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writing IR: helpers by which passes write operations."""
