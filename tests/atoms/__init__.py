# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The contracts of atoms, and their readers."""
