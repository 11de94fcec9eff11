# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""All faults of launches, found on the simulator at several stages, and their reports."""
