# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The passes, one a file, named as on the command line."""
