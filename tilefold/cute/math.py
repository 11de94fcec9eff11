# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`cute.math`: mathematical functions of numbers, values and fragments. With `fastmath=True`, one instruction
approximates a function, if there is one.
"""

from tilefold.builder.instructions.extremes import maximum as max
from tilefold.builder.instructions.extremes import minimum as min
from tilefold.builder.instructions.math import (
    RoundingMode,
    ceil,
    cos,
    div,
    erf,
    exp,
    exp2,
    floor,
    fma,
    log,
    log1p,
    log2,
    log10,
    mul,
    rcp,
    round_even,
    rsqrt,
    sin,
    sqrt,
    tanh,
    trunc,
)
from tilefold.builder.instructions.math import absolute as abs
from tilefold.builder.instructions.math import absolute as absf
from tilefold.builder.instructions.math import absolute as absi
from tilefold.builder.instructions.math import round_even as roundeven
from tilefold.builder.instructions.trigonometry import acos, asin, atan, atan2, tan

from .public import publish

__all__ = [
    "RoundingMode", "abs", "absf", "absi", "acos", "asin", "atan", "atan2", "ceil", "cos", "div", "erf", "exp", "exp2",
    "floor", "fma", "log", "log10", "log1p", "log2", "max", "min", "mul", "rcp", "round_even", "roundeven", "rsqrt",
    "sin", "sqrt", "tan", "tanh", "trunc",
]  # fmt: skip

publish(__name__)
