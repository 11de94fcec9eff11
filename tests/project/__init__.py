# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests of the project itself: what is installed, who imports whom, how files look."""
