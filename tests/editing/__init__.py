# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of the language server and the colours of words."""
