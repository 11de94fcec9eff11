# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The tools, a folder each. Both the command line and `tilefold.cute` call them.

No tool imports another; `joined` brings two together where one needs the result of the other.
"""
