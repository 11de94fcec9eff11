# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Mathematical functions of values and fragments; of numbers they are Python's own."""

import math as python
from collections.abc import Callable
from enum import Enum
from functools import partial
from typing import Protocol

from xdsl.dialects import arith, math
from xdsl.dialects.arith import FastMathFlagsAttr

from ...base.errors import Code, TilefoldError
from ...dialects.arith.integer_range import either
from ...dialects.math.functions import APPROXIMATE, FAST, INSTRUCTIONS
from ..scalars.arithmetic import FUNCTIONS, binary_type, check_computed, contract_sum, unary_type
from ..scalars.casts import check_numbers, check_operand, common_type, is_number, shown_number
from ..scalars.dtypes import Boolean, Float32, Int32
from ..scalars.operators import Operand
from ..scalars.values import Float, Value, compare, convert, wrap
from ..tensors.fragments import Vec, combined, elementwise, full_like, unary_of
from ..tensors.tensor_base import Elements
from ..tracing.state import insert_value
from . import arch


class Function(Protocol):
    """A mathematical function."""

    __name__: str

    def __call__(self, x: object, fastmath: bool = False, *, approx: bool = False, ftz: bool = False) -> Operand: ...


def _function(name: str, description: str, of_numbers: Callable[[float], float]) -> Function:
    """The function of a name, which computes `description`."""

    def function(x: Operand, fastmath: bool = False, *, approx: bool = False, ftz: bool = False) -> Operand:
        if is_number(x):
            return of_number(name, of_numbers, x)
        check_operand(x)
        fast = (fastmath or approx) and FUNCTIONS[name] in INSTRUCTIONS
        if not fast or unary_type(name, x.dtype).bits > Float32.bits:
            return unary_of(name, x)
        return _approximate(name, FAST if fastmath or ftz else APPROXIMATE, x)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = (
        f"{description}, for a number, a value, or each element of a fragment. It converts an integer to Float32\n"
        "first. With `fastmath` one instruction approximates the function, if there is one, and `a * b + c` as x\n"
        "rounds once; so with `approx`, which treats subnormal numbers as 0 only with `ftz`. Otherwise the function\n"
        "is accurate (docs/language.md)."
    )
    return function


def _approximate(name: str, flags: FastMathFlagsAttr, x: Operand) -> Operand:
    """A function of a value or a fragment by the instruction that approximates it."""
    dtype = unary_type(name, x.dtype)
    if isinstance(x, Vec):
        return elementwise(partial(_approximate, name, flags), dtype, x)
    return Float(insert_value(FUNCTIONS[name](contract_sum(convert(x, dtype).ssa), flags)), dtype)


def rcp(x: Operand, approx: bool = True, ftz: bool = False) -> Operand:
    """1 divided by a number, a value or each element of a fragment; with `approx` by one instruction, with an error of
    at most 1 ulp.
    """
    return arch.approx("rcp", x.to(Float32), ftz) if approx and not is_number(x) else 1.0 / x


class RoundingMode(Enum):
    """How an operation rounds."""

    NEAREST_EVEN = "rn"


def div(
    x: Operand, y: Operand, fastmath: bool = False, *, rounding: RoundingMode = RoundingMode.NEAREST_EVEN
) -> Operand:
    """`x / y`, of numbers, values or the elements of fragments. With `fastmath` one instruction approximates a quotient
    of up to 32 bits, with an error of at most 2 ulp where the divisor is between 2**-126 and 2**126; beyond, it may be
    0 (PTX ISA, div.approx). TilefoldError (E5002) for operands that have no quotient.
    """
    if is_number(x) and is_number(y):
        return x / y
    check_operand(x)
    check_operand(y)
    dtype = binary_type("div", x, y)
    if not fastmath or dtype.bits > Float32.bits:
        return combined("div", x, y)
    if _has_fragment(x, y):
        return elementwise(partial(div, fastmath=True), dtype, x, y)
    a, b = (convert(operand, dtype) for operand in (x, y))
    return Float(insert_value(arith.DivfOp(contract_sum(a.ssa), contract_sum(b.ssa), APPROXIMATE)), dtype)


def log1p(x: Operand, fastmath: bool = False) -> Operand:
    """The natural logarithm of 1 + x, of a number, a value or each element of a fragment, accurate also near 0: that
    of the rounded sum, and what the sum loses divided by it. With `fastmath` it is that of `log` of the sum.
    """
    if is_number(x):
        return of_number("log1p", python.log1p, x)
    check_operand(x)
    if fastmath:
        return log(x + 1.0, fastmath=True)
    given = x.to(unary_type("log", x.dtype))
    total = given + 1.0
    added = total - 1.0
    return where(added == 0.0, given, where(added == given, log(total), log(total) + (given - added) / total))


def of_number(name: str, function: Callable[..., float], *given: float) -> float:
    """A function of Python numbers. TilefoldError (E5002) where it has no result."""
    try:
        return function(*given)
    except (ArithmeticError, ValueError) as error:
        hint = f"cute.{name}(cute.Float32(x)) gives infinity or NaN"
        shown = ", ".join(map(shown_number, given))
        raise TilefoldError(Code.BUILD_VALUE, f"{name} of {shown} is not a number", hint) from error


exp = _function("exp", "e to the power of x", python.exp)
exp2 = _function("exp2", "2 to the power of x", lambda x: 2.0**x)
log = _function("log", "The natural logarithm", python.log)
log2 = _function("log2", "The logarithm to base 2", python.log2)
log10 = _function("log10", "The logarithm to base 10", python.log10)
sqrt = _function("sqrt", "The square root", python.sqrt)
rsqrt = _function("rsqrt", "1 divided by the square root", lambda x: 1.0 / python.sqrt(x))
sin = _function("sin", "The sine of an angle in radians", python.sin)
cos = _function("cos", "The cosine of an angle in radians", python.cos)
tanh = _function("tanh", "The hyperbolic tangent", python.tanh)
erf = _function("erf", "The error function", python.erf)
floor = _function("floor", "The integer at or below the number, as a float", lambda x: float(python.floor(x)))
ceil = _function("ceil", "The integer at or above the number, as a float", lambda x: float(python.ceil(x)))
round_even = _function(
    "round_even", "The nearest integer, of two equally near ones the even one, as a float", lambda x: float(round(x))
)
trunc = _function("trunc", "The integer part, as a float", lambda x: float(python.trunc(x)))


def absolute(x: Operand, fastmath: bool = False) -> Operand:
    """The absolute value, whatever `fastmath`."""
    check_operand(x)
    return abs(x)


def mul(x: Operand, y: Operand, fastmath: bool = False) -> Operand:
    """`x * y`, of numbers, values or the elements of fragments, whatever `fastmath`."""
    return x * y


def fma(a: Operand, b: Operand, c: Operand) -> Operand:
    """`a * b + c`, rounded once."""
    if _has_fragment(a, b, c):
        return elementwise(fma, common_type(a, b, c), a, b, c)
    dtype = common_type(a, b, c)
    if dtype.kind != "float" or not any(isinstance(operand, Value) for operand in (a, b, c)):
        return a * b + c
    check_computed(dtype)
    x, y, z = (convert(operand, dtype) for operand in (a, b, c))
    return Float(insert_value(math.FmaOp(x.ssa, y.ssa, z.ssa)), dtype)


def minimum(a: object, b: object) -> Operand:
    """The smaller of two; for a number and NaN, the number, like `numpy.fmin` (`numpy.minimum` gives NaN)."""
    return _extreme("min", min, a, b)


def maximum(a: object, b: object) -> Operand:
    """The larger of two; for a number and NaN, the number, like `numpy.fmax` (`numpy.maximum` gives NaN)."""
    return _extreme("max", max, a, b)


def _extreme(name: str, of_numbers: Callable[[Operand, Operand], object], a: object, b: object) -> Operand:
    return of_numbers(a, b) if is_number(a) and is_number(b) else combined(name, a, b)


def where(cond: Operand, x: Operand, y: Operand) -> Operand:
    """`x` where the condition holds, else `y`; both are computed."""
    if _has_fragment(cond, x, y):
        return elementwise(where, common_type(x, y), cond, x, y)
    if not isinstance(cond, Value):
        return x if cond else y
    dtype = common_type(x, y)
    check_numbers(dtype, x, y)
    x, y = convert(x, dtype), convert(y, dtype)
    chosen = insert_value(arith.SelectOp(convert(cond, Boolean).ssa, x.ssa, y.ssa))
    return wrap(chosen, dtype, either(x.range, y.range) if dtype.kind == "int" else None)


def argmax(x: Vec) -> Operand:
    """The position of the greatest element of a fragment, counted colexicographically, as an Int32: the first of
    several equal ones. NaN counts only if all elements are NaN.
    """
    return _first("gt", x)


def argmin(x: Vec) -> Operand:
    """Like `argmax`, for the least element."""
    return _first("lt", x)


def _first(better: str, x: Vec) -> Operand:
    if not isinstance(x, Vec):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TilefoldError(Code.BUILD_VALUE, f"expected a fragment, got {type(x).__name__}", "write t.load()")
    best, place = x[0], convert(0, Int32)
    for index in range(1, x.size):
        element = x[index]
        wins = compare(better, element, best)
        if x.dtype.kind == "float":
            wins = wins | (compare("ne", best, best) & compare("eq", element, element))
        best, place = where(wins, element, best), where(wins, convert(index, Int32), place)
    return place


def zeros_like(a: Vec | Elements, dtype: object = None) -> Vec:
    """A fragment of zeros in the shape of another, or of a tensor."""
    return full_like(a, 0, dtype)


def ones_like(a: Vec | Elements, dtype: object = None) -> Vec:
    """A fragment of ones in the shape of another, or of a tensor."""
    return full_like(a, 1, dtype)


def any_(x: Vec) -> Operand:
    """Whether an element of a fragment is true, or not 0."""
    return x.to(Boolean).reduce("or")


def all_(x: Vec) -> Operand:
    """Whether all elements of a fragment are true, or not 0."""
    return x.to(Boolean).reduce("and")


def _has_fragment(*xs: object) -> bool:
    return any(isinstance(x, Vec) for x in xs)
