# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Control flow of Python's syntax trees as calls. It knows names, not values: nothing here imports the builder."""
