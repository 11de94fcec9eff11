# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs by the module tree of CuTe programs."""
