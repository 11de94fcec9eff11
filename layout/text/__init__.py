# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Layouts as text: parsing, printing, expressions of the algebra and their explanation."""
