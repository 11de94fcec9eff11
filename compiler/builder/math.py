# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Mathematical functions of values and fragments; of numbers they are Python's own."""

import math as python
from collections.abc import Callable
from functools import partial
from typing import Any

from xdsl.dialects import arith, math
from xdsl.ir import Operation, SSAValue

from .dtypes import Boolean, Float32
from .fragments import Vec, elementwise
from .state import emit_value
from .values import Float, Value, binary, binary_type, check_computed, check_operand, common_type, convert, wrap


def _function(op: Callable[[SSAValue], Operation], of_numbers: Callable[[float], float]) -> Callable[[Any], Any]:
    def function(x: Any) -> Any:
        if isinstance(x, int | float):
            return of_numbers(x)
        check_operand(x)
        dtype = x.dtype if x.dtype.kind == "float" else Float32
        check_computed(dtype)
        if isinstance(x, Vec):
            return elementwise(function, dtype, x)
        return Float(emit_value(op(convert(x, dtype).ssa)), dtype)

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


def absolute(x: Any) -> Any:
    """The absolute value."""
    return abs(x)


def fma(a: Any, b: Any, c: Any) -> Any:
    """`a * b + c`, rounded once."""
    if _has_fragment(a, b, c):
        return elementwise(fma, common_type(a, b, c), a, b, c)
    dtype = common_type(a, b, c)
    if dtype.kind != "float" or not any(isinstance(each, Value) for each in (a, b, c)):
        return a * b + c
    check_computed(dtype)
    x, y, z = (convert(each, dtype) for each in (a, b, c))
    return Float(emit_value(math.FmaOp(x.ssa, y.ssa, z.ssa)), dtype)


def minimum(a: Any, b: Any) -> Any:
    """The smaller of two; of a number and NaN the number."""
    return _extreme("min", min, a, b)


def maximum(a: Any, b: Any) -> Any:
    """The larger of two; of a number and NaN the number."""
    return _extreme("max", max, a, b)


def _extreme(name: str, of_numbers: Callable[[Any, Any], Any], a: Any, b: Any) -> Any:
    if _has_fragment(a, b):
        return elementwise(partial(binary, name), binary_type(name, a, b), a, b)
    return binary(name, a, b) if isinstance(a, Value) or isinstance(b, Value) else of_numbers(a, b)


def where(condition: Any, a: Any, b: Any) -> Any:
    """`a` where the condition holds, else `b`; both are computed."""
    if _has_fragment(condition, a, b):
        return elementwise(where, common_type(a, b), condition, a, b)
    if not isinstance(condition, Value):
        return a if condition else b
    dtype = common_type(a, b)
    x, y = convert(a, dtype), convert(b, dtype)
    chosen = emit_value(arith.SelectOp(convert(condition, Boolean).ssa, x.ssa, y.ssa))
    return wrap(chosen, dtype, getattr(x, "nonnegative", False) and getattr(y, "nonnegative", False))


def _has_fragment(*xs: Any) -> bool:
    return any(isinstance(x, Vec) for x in xs)
