# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Public CuTe programs, run as they are from a checkout of their repository: `make programs DIR=...`."""
