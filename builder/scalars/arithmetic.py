# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arithmetic and comparisons: the operations of `arith` and `math` for those of Python, and the types of their results.

Integers and results carry known facts: their divisors and their range.

Powers (`**`), and quotients and remainders of floats, as Python's `//` and `%`, are several operations.
"""

import math as python
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Protocol

from xdsl.dialects import arith, math
from xdsl.ir import Operation, SSAValue

from ...base.errors import Code, TilefoldError
from ...dialects.arith.integer_range import Range, contains, modulo
from ...dialects.arith.semantics import INTEGER_OPERATIONS
from ...layout.algebra.integers import Unknown
from ..tracing.state import current, insert_value
from .casts import common_type, integer_attribute, is_number, shown_number
from .dtypes import DType, Float32, Int32
from .operators import Operand

_FLOATS: Mapping[str, Callable[[SSAValue, SSAValue], Operation]] = MappingProxyType({
    "add": arith.AddfOp, "sub": arith.SubfOp, "mul": arith.MulfOp, "div": arith.DivfOp,
    "min": arith.MinnumfOp, "max": arith.MaxnumfOp,
})  # fmt: skip
_INTEGERS: Mapping[str, type[arith.SignlessIntegerBinaryOperation]] = MappingProxyType({
    "add": arith.AddiOp, "sub": arith.SubiOp, "mul": arith.MuliOp, "min": arith.MinSIOp, "max": arith.MaxSIOp,
    "and": arith.AndIOp, "or": arith.OrIOp, "xor": arith.XOrIOp, "shl": arith.ShLIOp, "shr": arith.ShRSIOp,
    "floordiv": arith.FloorDivSIOp, "ceildiv": arith.CeilDivSIOp,
})  # fmt: skip
_UNSIGNED: Mapping[str, Callable[[SSAValue, SSAValue], Operation]] = MappingProxyType({
    "floordiv": arith.DivUIOp, "ceildiv": arith.CeilDivUIOp, "mod": arith.RemUIOp, "shr": arith.ShRUIOp,
})  # fmt: skip
_EXTREMES: Mapping[str, Callable[[SSAValue, SSAValue], Operation]] = MappingProxyType(
    {"min": arith.MinUIOp, "max": arith.MaxUIOp}
)
FUNCTIONS: Mapping[str, Callable[..., Operation]] = MappingProxyType({
    "exp": math.ExpOp, "exp2": math.Exp2Op, "log": math.LogOp, "log2": math.Log2Op, "log10": math.Log10Op,
    "sqrt": math.SqrtOp, "rsqrt": math.RsqrtOp, "sin": math.SinOp, "cos": math.CosOp, "tanh": math.TanhOp,
    "erf": math.ErfOp, "floor": math.FloorOp, "ceil": math.CeilOp, "round_even": math.RoundEvenOp,
    "trunc": math.TruncOp,
})  # fmt: skip
"""The mathematical functions of one float, which may be followed by flags."""


class Integer(Protocol):
    """An integer of a kernel, with its known divisor and its range."""

    @property
    def ssa(self) -> SSAValue: ...
    @property
    def dtype(self) -> DType: ...
    @property
    def known(self) -> Unknown: ...
    @property
    def range(self) -> Range: ...


def comparison(predicate: str, dtype: DType, x: SSAValue, y: SSAValue) -> Operation:
    """The comparison of two values of a type: `eq`, `ne`, `lt`, `le`, `gt` or `ge`."""
    if dtype.kind == "float":
        # NaN is unequal to everything
        return arith.CmpfOp(x, y, {"eq": "oeq", "ne": "une"}.get(predicate, "o" + predicate))
    sign = "u" if dtype.unsigned else "s"
    return arith.CmpiOp(x, y, predicate if predicate in ("eq", "ne") else sign + predicate)


def binary_type(name: str, a: object, b: object) -> DType:
    """The type in which an operation on two values, fragments or numbers is computed, and of the result.

    Raises TilefoldError (E5002) for operands without a common type.
    """
    return _result_type(name, common_type(a, b))


def _result_type(name: str, dtype: DType) -> DType:
    if name == "div" and dtype.kind != "float":
        return Float32
    if dtype.kind == "bool" and name not in ("and", "or", "xor"):
        return Int32
    if name not in ("min", "max"):
        dtype = promote(dtype)
    if dtype.kind == "float":
        check_computed(dtype)
        if name not in (*_FLOATS, "floordiv", "mod"):
            raise TilefoldError(Code.BUILD_VALUE, f"'{name}' is not defined for {dtype}", "it combines bits")
    return dtype


def promote(dtype: DType) -> DType:
    """The type in which arithmetic on a value is done: Int32 for integers that it holds, as C++ promotes them."""
    return Int32 if dtype.kind == "int" and dtype.bits < Int32.bits else dtype


def unary_type(name: str, dtype: DType) -> DType:
    """The type of `neg`, `abs`, `not` or one of `FUNCTIONS` of a value of a type. Raises TilefoldError (E5002) for a
    type without arithmetic.
    """
    if name == "not":
        return _result_type("xor", dtype)
    result = Float32 if name in FUNCTIONS and dtype.kind != "float" else promote(dtype)
    check_computed(result)
    return Int32 if name == "neg" and dtype.kind == "bool" else result


def check_computed(dtype: DType) -> None:
    """Raises TilefoldError (E5002) for a type without arithmetic."""
    if not dtype.has_arithmetic:
        raise TilefoldError(
            Code.BUILD_VALUE, f"{dtype} does not support arithmetic", "convert it first: x.to(cute.Float32)"
        )


def float_operation(name: str, x: SSAValue, y: SSAValue) -> SSAValue:
    """The operation of `arith` on two floats of one type; in a kernel that contracts, of a sum with a product that is
    computed beside it `math.fma`.
    """
    fused = _fuse(name, x, y) if current().contract else None
    return insert_value(_FLOATS[name](x, y)) if fused is None else fused


def contract_sum(value: SSAValue) -> SSAValue:
    """A float that is the sum of a product, rounded once; any other as it is."""
    op = value.owner
    name = "add" if isinstance(op, arith.AddfOp) else "sub" if isinstance(op, arith.SubfOp) else None
    fused = None if name is None or not isinstance(op, Operation) else _fuse(name, *op.operands)
    return value if fused is None else fused


def _fuse(name: str, x: SSAValue, y: SSAValue) -> SSAValue | None:
    """`x + y` or `x - y` as one operation, where one of them is a product of the same block; None otherwise."""
    if name not in ("add", "sub"):
        return None
    for product, other in ((x, y), (y, x)):
        op = product.owner
        if isinstance(op, arith.MulfOp) and op.parent is current().block:
            a, b = op.operands
            if name == "sub" and product is x:
                other = insert_value(arith.NegfOp(other))
            elif name == "sub":
                a = insert_value(arith.NegfOp(a))
            return insert_value(math.FmaOp(a, b, other))
    return None


def integer_facts(name: str, x: Integer, y: Integer, written: object) -> tuple[Unknown, Range | None]:
    """The known divisor of an operation's result, and its range if it does not wrap; None for any.

    `written` is the second operand as it was written. Raises TilefoldError (E5002) for a division by zero, and for a
    shift by more than the width.
    """
    if name in ("floordiv", "ceildiv", "mod") and type(written) is int and written == 0:
        raise TilefoldError(Code.BUILD_VALUE, "division by zero")
    if name in ("shl", "shr") and type(written) is int and not 0 <= written < x.dtype.bits:
        problem = f"{x.dtype} cannot be shifted by {shown_number(written)}"
        raise TilefoldError(Code.BUILD_VALUE, problem, f"shift by 0 to {x.dtype.bits - 1}")
    if name == "mod":
        return x.known % y.known, modulo(x.range, y.range, x.dtype.bits)
    operation = INTEGER_OPERATIONS[_INTEGERS[name]]
    known = Unknown(x.dtype.bits)
    if name in ("shr", "shl") and type(written) is int:
        known = operation.value(x.known, written)
    elif name in ("floordiv", "ceildiv") and type(written) is int and 0 <= written < 1 << 62:
        known = x.known // written
    elif name not in ("shr", "shl", "floordiv", "ceildiv"):
        known = operation.value(x.known, y.known)
    return known, operation.range(x.range, y.range, x.dtype.bits)


def integer_operation(name: str, x: Operand, y: Operand, written: Operand) -> SSAValue:
    """The operation of `arith`, or several, for one of Python on two integers, which have Python's operators, or on two
    predicates; `written` is the second operand as it was written.
    """
    if x.dtype.kind == "bool":
        return insert_value(_INTEGERS[name](x.ssa, y.ssa))
    both = x.nonnegative and y.nonnegative
    sum = x.range[0] + y.range[0], x.range[1] + y.range[1]
    if name == "ceildiv" and y.range[0] > 0 and contains(x.dtype.limits, sum):
        return ((x + y - 1) // (written if type(written) is int else y)).ssa
    power = type(written) is int and written > 0 and written & (written - 1) == 0
    if name == "mod" and not both:
        # Python's remainder has the sign of the divisor
        return (x & (written - 1) if power else x - (x // y) * y).ssa
    if name == "floordiv" and not both and power:
        bits = current().constant(integer_attribute(written.bit_length() - 1, x.dtype.ir))
        return insert_value(arith.ShRSIOp(x.ssa, bits))
    if name in _EXTREMES and x.dtype.unsigned:
        return insert_value(_EXTREMES[name](x.ssa, y.ssa))
    if name in _UNSIGNED and both:
        return insert_value(_UNSIGNED[name](x.ssa, y.ssa))
    return insert_value(_INTEGERS[name](x.ssa, y.ssa))


Function = Callable[[str, Operand], Operand]
"""A function of a value or a fragment, by its name: `sqrt`, `rsqrt`, `exp2`, `log2`."""
Filled = Callable[[Operand, int], Operand]
"""A number in the type, and the shape, of a value or a fragment."""


def power(base: Operand, exponent: Operand, function: Function, filled: Filled) -> Operand:
    """`base ** exponent`, not both Python numbers.

    A static integer multiplies, ±0.5 is a root. Any other power is `exp2(exponent * log2(base))`, in Float32 at least:
    NaN of a negative base. Raises TilefoldError (E5002) for powers of integers that are not integers, or not static.
    """
    dtype = common_type(base, exponent)
    static = bool(is_number(exponent))
    if static and (isinstance(exponent, int) or exponent.is_integer()):
        return _multiply_repeatedly(base, int(exponent), filled)
    if dtype.kind != "float":
        raise TilefoldError(
            Code.BUILD_VALUE,
            f"the power of integers, {base!r} ** {exponent!r}, needs a static exponent",
            "write 1 << n for 2 ** n, or convert to cute.Float32",
        )
    check_computed(dtype)
    if static and abs(exponent) == 0.5:
        return function("sqrt" if exponent > 0 else "rsqrt", base)
    wide = Float32 if dtype.bits < 32 else dtype
    factor = exponent if static else exponent.to(wide)
    if not is_number(base):
        return function("exp2", function("log2", base.to(wide)) * factor).to(dtype)
    if base <= 0:
        raise TilefoldError(Code.BUILD_VALUE, f"{base} ** x is undefined for a value x", "the base must be positive")
    return function("exp2", factor * python.log2(base)).to(dtype)


def _multiply_repeatedly(base: Operand, exponent: int, filled: Filled) -> Operand:
    if exponent < 0:
        if base.dtype.kind != "float":
            raise TilefoldError(
                Code.BUILD_VALUE, f"{base!r} ** {exponent} is not an integer", "convert to cute.Float32"
            )
        return 1 / _multiply_repeatedly(base, -exponent, filled)
    if exponent == 0:
        return filled(base, 1)
    square: Operand = base
    result: Operand = None
    while exponent:
        if exponent & 1:
            result = square if result is None else result * square
        exponent >>= 1
        square = square * square if exponent else square
    return result


def floor_divide(
    x: Operand,
    y: Operand,
    unary: Callable[[str, Operand], Operand],
    fma: Callable[..., Operand],
    where: Callable[..., Operand],
) -> tuple[Operand, Operand]:
    """The quotient rounded down, and the remainder, of two floats of one type.

    The remainder is Python's where the quotient is less than 2^24 (2^53 of Float64): the rounded quotient may then be
    one too large, which the sign of the remainder shows. A remainder of 0 has the sign of the divisor. The remainder of
    a division by 0 is NaN, and its quotient that of `/`.
    """
    dtype = x.dtype
    if dtype.bits < Float32.bits:
        quotient, rest = floor_divide(x.to(Float32), y.to(Float32), unary, fma, where)
        return quotient.to(dtype), rest.to(dtype)
    quotient = unary("floor", x / y)
    rest = where(quotient == 0, x, fma(-quotient, y, x))  # 0 times an infinite y were NaN
    below = (rest != 0) & ((rest < 0) ^ (y < 0))
    zero = abs(rest)
    zero = where(y < 0, -zero, zero)
    return where(below, quotient - 1.0, quotient), where(below, rest + y, where(rest == 0, zero, rest))
