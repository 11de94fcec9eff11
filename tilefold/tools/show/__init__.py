# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The command `tilefold show`: reads layouts and names from options, and lays out the tables that CuTe prints."""
