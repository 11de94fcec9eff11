# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Who sees which write when: schedules, barriers, asynchronous copies and races."""
