# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rules for the math dialect.

Square roots and fused multiply-adds are rounded correctly to the nearest even number of the type. Other functions are
computed in f32 by the steps that `expand-math` writes. Functions of f64, and those that PTX lacks, are computed in
double precision and rounded.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from xdsl.dialects import math
from xdsl.ir import Operation

from ....dialects.math.functions import function_of
from ...special_functions import erf
from ..events import Step
from ..translate import Rule, Rules, Translator
from ..values import Value, narrow
from ..values.approximations import ArrayArithmetic
from .arithmetic import elementwise, fma, in_double

_ARITHMETIC = ArrayArithmetic()


def _function(in_f64: Callable[..., object]) -> Rule:
    """A rule for a function that `math`'s definition computes in f32, and this one of NumPy in f64."""

    def rule(op: Operation, t: Translator) -> Step:
        dtype, computed = t.kind(op.results[0]).dtype, function_of(op)
        if computed is None or dtype.itemsize > 4:
            return in_double(in_f64)(op, t)

        def in_f32(value: Value) -> Value:
            x = np.asarray(value)
            y = computed(_ARITHMETIC, np.atleast_1d(x).astype(np.float32))
            return narrow(y.reshape(x.shape), dtype)

        return t.compute(op.results[0], in_f32, op.operands[0])

    return rule


def _reciprocal_root(x: Any) -> Any:
    return 1 / np.sqrt(x)


def _round_half_away(x: Any) -> Any:
    whole = np.trunc(x)
    # An infinity less itself is NaN, and stays.
    return np.copysign(whole + np.where(np.abs(x - whole) >= 0.5, np.sign(x), 0.0), x)


MATH_FUNCTIONS: Rules = {
    math.FmaOp: fma,
    math.AbsFOp: elementwise(np.abs),
    math.CopySignOp: elementwise(np.copysign),
    math.SqrtOp: _function(np.sqrt),
    math.RsqrtOp: _function(_reciprocal_root),
    math.ExpOp: _function(np.exp),
    math.Exp2Op: _function(np.exp2),
    math.ExpM1Op: in_double(np.expm1),
    math.LogOp: _function(np.log),
    math.Log2Op: _function(np.log2),
    math.Log10Op: _function(np.log10),
    math.Log1pOp: in_double(np.log1p),
    math.SinOp: _function(np.sin),
    math.CosOp: _function(np.cos),
    math.TanOp: in_double(np.tan),
    math.TanhOp: _function(np.tanh),
    math.ErfOp: _function(erf),
    math.PowFOp: in_double(np.power),
    math.FloorOp: in_double(np.floor),
    math.CeilOp: in_double(np.ceil),
    math.TruncOp: in_double(np.trunc),
    math.RoundOp: in_double(_round_half_away),
    math.RoundEvenOp: in_double(np.rint),
}
