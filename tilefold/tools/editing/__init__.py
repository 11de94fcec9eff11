# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Editing `.cute` files: colours of their words, and a language server."""
