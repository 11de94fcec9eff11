# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of README and docs: what they show is what the commands print, and what they link to exists."""
