# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions of numbers, in the form of MLIR's dialect math."""

from tilefold.cute import math
from tilefold.cute.math import *  # noqa: F403
from tilefold.cute.math import abs as absi

__all__ = ["absi"]
__all__ += math.__all__
