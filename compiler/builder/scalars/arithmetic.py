# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arithmetic and comparisons of values and numbers: the operations of `arith`, and what is known of their results."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from xdsl.dialects import arith, math
from xdsl.ir import Operation, SSAValue

from ....base.errors import Code, TilefoldError
from ....dialects.arith.integer_range import absolute, contains, modulo
from ....dialects.arith.semantics import INTEGER_OPERATIONS
from ....layout.algebra.unknown import Unknown
from ..tracing.state import insert_value
from .dtypes import Boolean, DType, Float32, Int32
from .values import (
    Bool,
    Float,
    Int,
    Value,
    check_numbers,
    common_type,
    constant,
    convert,
    is_scalar,
    limited,
    number_of,
    shown_number,
    wrap,
)

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


def compare(predicate: str, a: Any, b: Any) -> Any:
    """A comparison of two values: `eq`, `ne`, `lt`, `le`, `gt` or `ge`."""
    if not (is_scalar(a) and is_scalar(b)):
        return NotImplemented
    a, b = number_of(a), number_of(b)
    dtype = common_type(a, b)
    check_numbers(dtype, a, b)
    x, y = convert(a, dtype), convert(b, dtype)
    if dtype.kind == "float":
        # NaN is unequal to everything
        name = {"eq": "oeq", "ne": "une"}.get(predicate, "o" + predicate)
        return Bool(insert_value(arith.CmpfOp(x.ssa, y.ssa, name)), Boolean)
    sign = "u" if dtype.unsigned else "s"
    name = predicate if predicate in ("eq", "ne") else sign + predicate
    return Bool(insert_value(arith.CmpiOp(x.ssa, y.ssa, name)), Boolean)


def binary_type(name: str, a: Any, b: Any) -> DType:
    """The type in which an operation on two values, fragments or numbers is computed, and of the result.

    Raises TilefoldError (E5002) where there is none.
    """
    dtype = common_type(a, b)
    if dtype.kind == "bool" and name not in ("and", "or", "xor"):
        dtype = Int32
    if name == "div" and dtype.kind == "int":
        dtype = Float32
    if dtype.kind == "float":
        check_computed(dtype)
        if name not in (*_FLOATS, "floordiv", "mod"):
            raise TilefoldError(Code.BUILD_VALUE, f"'{name}' is not defined for {dtype}", "it combines bits")
    return dtype


def check_computed(dtype: DType) -> None:
    """Raises TilefoldError (E5002) for a type of which there is no arithmetic."""
    if not dtype.has_arithmetic:
        raise TilefoldError(
            Code.BUILD_VALUE, f"there is no arithmetic of {dtype}", "convert it first: x.to(cute.Float32)"
        )


def binary(name: str, a: Any, b: Any) -> Any:
    """An operation on two values or numbers, in their common type. Raises TilefoldError (E5002) where there is none."""
    if not (is_scalar(a) and is_scalar(b)):
        return NotImplemented
    a, b = number_of(a), number_of(b)
    dtype = binary_type(name, a, b)
    if (same := _neutral(name, a, b, dtype)) is not None:
        return same
    if name not in ("and", "or", "xor"):
        check_numbers(dtype, a, b)
    x, y = convert(a, dtype), convert(b, dtype)
    if dtype.kind == "float":
        return _float_binary(name, x, y)
    if dtype.kind == "bool":
        return Bool(insert_value(_INTEGERS[name](x.ssa, y.ssa)), dtype)
    return _int_binary(name, x, y, b)


def _neutral(name: str, a: Any, b: Any, dtype: DType) -> Any:
    """The operand that is the result already: x + 0, x * 1, x // 1; None otherwise."""
    if dtype.kind != "int":
        return None
    if isinstance(a, Value) and a.dtype == dtype and type(b) is int:
        if b == 0 and name in ("add", "sub", "or", "xor", "shl", "shr"):
            return a
        if b == 1 and name in ("mul", "floordiv"):
            return a
    neutral = (a == 0 and name in ("add", "or", "xor")) or (a == 1 and name == "mul") if type(a) is int else False
    return b if neutral and isinstance(b, Value) and b.dtype == dtype else None


def _float_binary(name: str, x: Float, y: Float) -> Any:
    if name in ("floordiv", "mod"):
        from .math import floor

        quotient = floor(binary("div", x, y))
        return quotient if name == "floordiv" else x - quotient * y
    return Float(insert_value(_FLOATS[name](x.ssa, y.ssa)), dtype=x.dtype)


def _int_binary(name: str, x: Int, y: Int, written: Any) -> Int:
    if name in ("floordiv", "ceildiv", "mod") and type(written) is int and written == 0:
        raise TilefoldError(Code.BUILD_VALUE, "division by zero")
    if name in ("shl", "shr") and type(written) is int and not 0 <= written < x.dtype.bits:
        problem = f"{x.dtype} cannot be shifted by {shown_number(written)}"
        raise TilefoldError(Code.BUILD_VALUE, problem, f"shift by 0 to {x.dtype.bits - 1}")
    if name in ("floordiv", "ceildiv", "mod") and type(written) is int and written == -1 and not x.dtype.unsigned:
        return constant(0, x.dtype) if name == "mod" else unary("neg", x)  # also of the least integer
    known = Unknown(x.dtype.bits)
    if name == "mod":
        known, range = x.known % y.known, modulo(x.range, y.range, x.dtype.bits)
    else:
        operation = INTEGER_OPERATIONS[_INTEGERS[name]]
        range = operation.range(x.range, y.range, x.dtype.bits)
        if name in ("shr", "shl") and type(written) is int:
            known = operation.value(x.known, written)
        elif name in ("floordiv", "ceildiv") and type(written) is int and 0 <= written < 1 << 62:
            known = x.known // written
        elif name not in ("shr", "shl", "floordiv", "ceildiv"):
            known = operation.value(x.known, y.known)
    return limited(_int_operation(name, x, y, written), x.dtype, known, range)


def _int_operation(name: str, x: Int, y: Int, written: Any) -> SSAValue:
    """The operation of `arith`, or several, for one of Python."""
    both = x.nonnegative and y.nonnegative
    sum = x.range[0] + y.range[0], x.range[1] + y.range[1]
    if name == "ceildiv" and y.range[0] > 0 and contains(x.dtype.limits, sum):
        return ((x + y - 1) // (written if type(written) is int else y)).ssa
    power = type(written) is int and written > 0 and written & (written - 1) == 0
    if name == "mod" and not both:
        # Python's remainder has the sign of the divisor
        return (x & (written - 1) if power else x - (x // y) * y).ssa
    if name == "floordiv" and not both and power:
        return insert_value(arith.ShRSIOp(x.ssa, constant(written.bit_length() - 1, x.dtype).ssa))
    if name in _EXTREMES and x.dtype.unsigned:
        return insert_value(_EXTREMES[name](x.ssa, y.ssa))
    if name in _UNSIGNED and both:
        return insert_value(_UNSIGNED[name](x.ssa, y.ssa))
    return insert_value(_INTEGERS[name](x.ssa, y.ssa))


def unary(name: str, x: Any) -> Any:
    """`neg`, `abs` or `not` (of bits) of a value."""
    if name == "not":
        ones = x.dtype.greatest if x.dtype.unsigned else -1
        return binary("xor", x, True if x.dtype.kind == "bool" else ones)
    check_computed(x.dtype)
    if name == "abs" and x.dtype.unsigned:
        return x
    if name == "neg":
        return Float(insert_value(arith.NegfOp(x.ssa)), x.dtype) if x.dtype.kind == "float" else binary("sub", 0, x)
    if x.dtype.kind == "float":
        return wrap(insert_value(math.AbsFOp(x.ssa)), x.dtype)
    return limited(insert_value(math.AbsIOp(x.ssa)), x.dtype, x.known, absolute(x.range))
