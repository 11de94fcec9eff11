# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions of floats, in the form of MLIR's dialect math."""

from tilefold.cute.math import *  # noqa: F403
