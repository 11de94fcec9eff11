# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Single instructions of a thread: coordinates, barriers, atomics, exchanges, printing."""
