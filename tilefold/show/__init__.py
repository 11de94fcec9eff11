# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What `tilefold show tiled-copy` does: reads layouts and names from options, and lays out what CuTe would print."""
