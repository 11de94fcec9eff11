# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks of many programs: those of a folder, in parallel, and those of launches within a user's tests."""
