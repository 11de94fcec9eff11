# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Public suites of kernels, compiled by NVRTC and checked at stage `ptx`. The suites are no part of the project."""
