# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Mathematical functions of values and fragments; of numbers they are Python's own."""

import math as python
from collections.abc import Callable
from typing import Any

from xdsl.dialects import arith, math
from xdsl.ir import Operation, SSAValue

from ....base.errors import Code, TilefoldError
from ....dialects.arith.integer_range import either
from ..tensors.fragments import Vec, combined, elementwise
from ..tracing.state import insert_value
from .arithmetic import check_computed
from .dtypes import Boolean, Float32
from .values import (
    Float,
    Value,
    check_numbers,
    check_operand,
    common_type,
    convert,
    is_number,
    shown_number,
    wrap,
)


def _function(
    name: str, what: str, op: Callable[[SSAValue], Operation], of_numbers: Callable[[float], float]
) -> Callable[[Any], Any]:
    """The function of a name, which computes `what`."""

    def function(x: Any) -> Any:
        if is_number(x):
            return _of_number(name, of_numbers, x)
        check_operand(x)
        dtype = x.dtype if x.dtype.kind == "float" else Float32
        check_computed(dtype)
        if isinstance(x, Vec):
            return elementwise(function, dtype, x)
        return Float(insert_value(op(convert(x, dtype).ssa)), dtype)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = (
        f"{what}, of a number, a value, or each element of a fragment, whose shape the result has. An integer is\n"
        "converted to Float32 before."
    )
    return function


def _of_number(name: str, function: Callable[[float], float], x: float) -> float:
    try:
        return function(x)
    except (ArithmeticError, ValueError) as error:
        hint = f"of a value, as in cute.{name}(cute.Float32(x)), it is infinity or NaN"
        raise TilefoldError(Code.BUILD_VALUE, f"{name} of {shown_number(x)} is no number", hint) from error


exp = _function("exp", "e to the power of x", math.ExpOp, python.exp)
exp2 = _function("exp2", "2 to the power of x", math.Exp2Op, lambda x: 2.0**x)
log = _function("log", "The natural logarithm", math.LogOp, python.log)
log2 = _function("log2", "The logarithm to base 2", math.Log2Op, python.log2)
log10 = _function("log10", "The logarithm to base 10", math.Log10Op, python.log10)
sqrt = _function("sqrt", "The square root", math.SqrtOp, python.sqrt)
rsqrt = _function("rsqrt", "1 divided by the square root", math.RsqrtOp, lambda x: 1.0 / python.sqrt(x))
sin = _function("sin", "The sine of an angle in radians", math.SinOp, python.sin)
cos = _function("cos", "The cosine of an angle in radians", math.CosOp, python.cos)
tanh = _function("tanh", "The hyperbolic tangent", math.TanhOp, python.tanh)
erf = _function("erf", "The error function", math.ErfOp, python.erf)
floor = _function(
    "floor", "The greatest integer that is not greater, as a float", math.FloorOp, lambda x: float(python.floor(x))
)
ceil = _function("ceil", "The least integer that is not less, as a float", math.CeilOp, lambda x: float(python.ceil(x)))
round_even = _function(
    "round_even",
    "The nearest integer, of two equally near ones the even one, as a float",
    math.RoundEvenOp,
    lambda x: float(round(x)),
)
trunc = _function("trunc", "The integer part, as a float", math.TruncOp, lambda x: float(python.trunc(x)))


def absolute(x: Any) -> Any:
    """The absolute value."""
    check_operand(x)
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
    return Float(insert_value(math.FmaOp(x.ssa, y.ssa, z.ssa)), dtype)


def minimum(a: Any, b: Any) -> Any:
    """The smaller of two; of a number and NaN the number, as `numpy.fmin`; `numpy.minimum` gives NaN."""
    return _extreme("min", min, a, b)


def maximum(a: Any, b: Any) -> Any:
    """The larger of two; of a number and NaN the number, as `numpy.fmax`; `numpy.maximum` gives NaN."""
    return _extreme("max", max, a, b)


def _extreme(name: str, of_numbers: Callable[[Any, Any], Any], a: Any, b: Any) -> Any:
    return of_numbers(a, b) if is_number(a) and is_number(b) else combined(name, a, b)


def where(condition: Any, a: Any, b: Any) -> Any:
    """`a` where the condition holds, else `b`; both are computed."""
    if _has_fragment(condition, a, b):
        return elementwise(where, common_type(a, b), condition, a, b)
    if not isinstance(condition, Value):
        return a if condition else b
    dtype = common_type(a, b)
    check_numbers(dtype, a, b)
    x, y = convert(a, dtype), convert(b, dtype)
    chosen = insert_value(arith.SelectOp(convert(condition, Boolean).ssa, x.ssa, y.ssa))
    return wrap(chosen, dtype, either(x.range, y.range) if dtype.kind == "int" else None)


def _has_fragment(*xs: Any) -> bool:
    return any(isinstance(x, Vec) for x in xs)
