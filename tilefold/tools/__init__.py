# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The tools, a folder each. Both the command line and `tilefold.cute` call them; no tool imports another."""
