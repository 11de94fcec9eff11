# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Mathematical functions of values; of numbers they are Python's own."""

import math as python
from collections.abc import Callable
from typing import Any

from xdsl.dialects import arith, math
from xdsl.ir import Operation, SSAValue

from ...layout.errors import Code, TilefoldError
from .dtypes import Boolean, Float32
from .state import emit_value
from .values import Float, Scalar, Value, binary, common_type, convert, wrap


def _function(op: Callable[[SSAValue], Operation], of_numbers: Callable[[float], float]) -> Callable[[Any], Any]:
    def function(x: Scalar) -> Any:
        if not isinstance(x, Value):
            return of_numbers(x)
        operand = x if isinstance(x, Float) else convert(x, Float32)
        if operand.dtype.bits == 8:
            raise TilefoldError(
                Code.BUILD_VALUE, f"there is no arithmetic of {x.dtype}", "convert it first: x.to(cute.Float32)"
            )
        return Float(emit_value(op(operand.ssa)), operand.dtype)

    return function


exp = _function(math.ExpOp, python.exp)
exp2 = _function(math.Exp2Op, lambda x: 2.0**x)
log = _function(math.LogOp, python.log)
log2 = _function(math.Log2Op, python.log2)
log10 = _function(math.Log10Op, python.log10)
sqrt = _function(math.SqrtOp, python.sqrt)
rsqrt = _function(math.RsqrtOp, lambda x: 1.0 / python.sqrt(x))
sin = _function(math.SinOp, python.sin)
cos = _function(math.CosOp, python.cos)
tanh = _function(math.TanhOp, python.tanh)
erf = _function(math.ErfOp, python.erf)
floor = _function(math.FloorOp, lambda x: float(python.floor(x)))
ceil = _function(math.CeilOp, lambda x: float(python.ceil(x)))
round_even = _function(math.RoundEvenOp, lambda x: float(round(x)))
trunc = _function(math.TruncOp, lambda x: float(python.trunc(x)))


def absolute(x: Scalar) -> Any:
    """The absolute value."""
    if not isinstance(x, Value):
        return abs(x)
    op = math.AbsFOp if x.dtype.kind == "float" else math.AbsIOp
    return wrap(emit_value(op(x.ssa)), x.dtype)


def fma(a: Scalar, b: Scalar, c: Scalar) -> Any:
    """`a * b + c`, rounded once."""
    dtype = common_type(a, b, c)
    if dtype.kind != "float":
        return binary("add", binary("mul", a, b), c)
    x, y, z = (convert(each, dtype) for each in (a, b, c))
    return Float(emit_value(math.FmaOp(x.ssa, y.ssa, z.ssa)), dtype)


def minimum(a: Scalar, b: Scalar) -> Any:
    """The smaller of two; of a number and NaN the number."""
    return binary("min", a, b) if isinstance(a, Value) or isinstance(b, Value) else min(a, b)


def maximum(a: Scalar, b: Scalar) -> Any:
    """The larger of two; of a number and NaN the number."""
    return binary("max", a, b) if isinstance(a, Value) or isinstance(b, Value) else max(a, b)


def where(condition: Any, a: Scalar, b: Scalar) -> Any:
    """`a` where the condition holds, else `b`; both are computed."""
    if not isinstance(condition, Value):
        return a if condition else b
    dtype = common_type(a, b)
    x, y = convert(a, dtype), convert(b, dtype)
    chosen = emit_value(arith.SelectOp(convert(condition, Boolean).ssa, x.ssa, y.ssa))
    return wrap(chosen, dtype, getattr(x, "nonnegative", False) and getattr(y, "nonnegative", False))
