# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Running the launches of a file: their arguments, engines and checks."""
