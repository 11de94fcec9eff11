# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Several simulated devices in one process."""
