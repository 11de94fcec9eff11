# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Recorded results of CuTe C++ on the host, and the runner that holds tilefold's layout algebra to them."""
