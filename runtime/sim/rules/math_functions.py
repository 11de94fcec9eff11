# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rules for the math dialect.

Square roots and fused multiply-adds are rounded correctly to the nearest even number of the type; other functions are
computed in double precision and rounded. A GPU may differ by the error of its approximate instructions.
"""

from typing import Any

import numpy as np
from xdsl.dialects import math
from xdsl.ir import Operation

from ...special_functions import erf
from ..translate import Rules, Step, Translator
from ..values.rounding import fused_multiply_add
from ..warp import Warp
from .floats import elementwise, in_double


def _fma(op: Operation, t: Translator) -> Step:
    a, b, c = t.slots(op.operands)
    result = t.slot(op.results[0])
    dtype = t.kind(op.results[0]).dtype

    def step(warp: Warp) -> None:
        registers = warp.registers
        registers[result] = fused_multiply_add(registers[a], registers[b], registers[c], dtype)

    return step


def _reciprocal_root(x: Any) -> Any:
    return 1 / np.sqrt(x)


def _round_half_away(x: Any) -> Any:
    whole = np.trunc(x)
    # An infinity less itself is NaN, and stays.
    return np.copysign(whole + np.where(np.abs(x - whole) >= 0.5, np.sign(x), 0.0), x)


MATH_FUNCTIONS: Rules = {
    math.FmaOp: _fma,
    math.AbsFOp: elementwise(np.abs),
    math.CopySignOp: elementwise(np.copysign),
    math.SqrtOp: in_double(np.sqrt),
    math.RsqrtOp: in_double(_reciprocal_root),
    math.ExpOp: in_double(np.exp),
    math.Exp2Op: in_double(np.exp2),
    math.ExpM1Op: in_double(np.expm1),
    math.LogOp: in_double(np.log),
    math.Log2Op: in_double(np.log2),
    math.Log10Op: in_double(np.log10),
    math.Log1pOp: in_double(np.log1p),
    math.SinOp: in_double(np.sin),
    math.CosOp: in_double(np.cos),
    math.TanOp: in_double(np.tan),
    math.TanhOp: in_double(np.tanh),
    math.ErfOp: in_double(erf),
    math.PowFOp: in_double(np.power),
    math.FloorOp: in_double(np.floor),
    math.CeilOp: in_double(np.ceil),
    math.TruncOp: in_double(np.trunc),
    math.RoundOp: in_double(_round_half_away),
    math.RoundEvenOp: in_double(np.rint),
}
