# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The front end: from text to a verified program, and the diagnostics about it."""
