# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The order of accesses: schedules, barriers, asynchronous copies and races."""
