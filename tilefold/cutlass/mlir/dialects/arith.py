# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arithmetic on numbers, in the form of MLIR's dialect arith."""

import operator
from collections.abc import Callable, Mapping
from enum import Enum, Flag
from types import MappingProxyType
from typing import Any, cast

from xdsl.dialects.builtin import VectorType
from xdsl.ir import Attribute

from tilefold.base.errors import Code, TilefoldError
from tilefold.builder.instructions.bits import bitcast as bits_of
from tilefold.builder.instructions.extremes import fmax, fmin
from tilefold.builder.instructions.math import where
from tilefold.builder.scalars.dtypes import DTYPES, DType, dtype_of
from tilefold.builder.scalars.operators import Operand
from tilefold.builder.scalars.values import as_value, convert
from tilefold.builder.tensors.fragments import Vec

from . import vector

__all__ = [
    "CmpFPredicate", "CmpIPredicate", "FastMathFlags", "addf", "addi", "andi", "bitcast", "cmpf", "cmpi", "constant",
    "divf", "extf", "extsi", "extui", "maximumf", "maxnumf", "minimumf", "minnumf", "mulf", "muli", "ori", "select",
    "shli", "shrui", "subf", "subi", "truncf", "trunci", "xori",
]  # fmt: skip


class FastMathFlags(Flag):
    """What a compiler may assume of floats, by the names of the dialect. tilefold assumes none of it."""

    none = 0
    reassoc = 1
    nnan = 2
    ninf = 4
    nsz = 8
    arcp = 16
    contract = 32
    afn = 64
    fast = 127


class CmpIPredicate(Enum):
    """Comparisons of integers: of signed (s) and of unsigned ones (u)."""

    eq, ne, slt, sle, sgt, sge, ult, ule, ugt, uge = range(10)


class CmpFPredicate(Enum):
    """Comparisons of floats: false (o) or true (u) if one of them is NaN."""

    AlwaysFalse, OEQ, OGT, OGE, OLT, OLE, ONE, ORD, UEQ, UGT, UGE, ULT, ULE, UNE, UNO, AlwaysTrue = range(16)


_COMPARISONS: Mapping[str, Callable[[Any, Any], Any]] = MappingProxyType({
    "EQ": operator.eq, "NE": lambda a, b: (a < b) | (a > b), "LT": operator.lt, "LE": operator.le, "GT": operator.gt,
    "GE": operator.ge, "RD": lambda a, b: (a == a) & (b == b),
})  # fmt: skip
"""The ordered comparisons by the end of their name; `RD` is that of ORD."""
_OPPOSITES = MappingProxyType({"EQ": "NE", "NE": "EQ", "LT": "GE", "LE": "GT", "GT": "LE", "GE": "LT", "NO": "RD"})
"""The ordered comparisons that do not hold where an unordered one does."""


def cmpi(predicate: CmpIPredicate, lhs: Operand, rhs: Operand) -> Operand:
    """Whether two integers compare so, as signed or as unsigned ones, whatever their types."""
    name, given = predicate.name, (as_value(lhs), as_value(rhs))
    if predicate in (CmpIPredicate.eq, CmpIPredicate.ne):
        return (operator.eq if name == "eq" else operator.ne)(*given)
    to = _unsigned if name[0] == "u" else _signed
    return _COMPARISONS[name[1:].upper()](*(convert(x, to(x.dtype)) for x in given))


def cmpf(predicate: CmpFPredicate, lhs: Operand, rhs: Operand, fastmath: object = None) -> Operand:
    """Whether two floats compare so, whatever `fastmath`."""
    name, given = predicate.name, (as_value(lhs), as_value(rhs))
    if name.startswith("Always"):
        return constant(DTYPES["Boolean"].ir, predicate is CmpFPredicate.AlwaysTrue)
    if name[0] == "O":
        return _COMPARISONS[name[1:]](*given)
    return ~_COMPARISONS[_OPPOSITES[name[1:]]](*given)


def constant(result: Attribute, value: float) -> Operand:
    """A number of a type."""
    return dtype_of(result)(value)


def bitcast(out: Any, in_: Operand) -> Operand:
    """The bits of a number or of a vector as another type, which may be that of either. Raises TilefoldError (E5002)
    for a vector that is not as wide as the number.
    """
    if isinstance(out, VectorType):
        kind = cast("VectorType[Attribute]", out)
        return vector.bitcast(kind, in_ if isinstance(in_, Vec) else vector.vector_of([as_value(in_)]))
    if not isinstance(in_, Vec):
        return bits_of(in_, _type(out))
    numbers = in_.bitcast(_type(out))
    if numbers.size != 1:
        message = f"the bits of {in_.size} elements of {in_.dtype} are not those of one {_type(out)}"
        raise TilefoldError(Code.BUILD_VALUE, message, "take a type that is as wide")
    return numbers[0]


def select(condition: object, true_value: object, false_value: object) -> Operand:
    """One of two numbers, as a predicate says."""
    return where(condition, true_value, false_value)


def addi(lhs: Operand, rhs: Operand) -> Operand:
    """The sum of integers."""
    return as_value(lhs) + rhs


def addf(lhs: object, rhs: object, fastmath: object = None) -> Operand:
    """The sum of floats, rounded whatever `fastmath`."""
    return addi(lhs, rhs)


def subi(lhs: Operand, rhs: Operand) -> Operand:
    """The difference of integers."""
    return as_value(lhs) - rhs


def subf(lhs: object, rhs: object, fastmath: object = None) -> Operand:
    """The difference of floats, rounded whatever `fastmath`."""
    return subi(lhs, rhs)


def muli(lhs: Operand, rhs: Operand) -> Operand:
    """The product of integers."""
    return as_value(lhs) * rhs


def mulf(lhs: object, rhs: object, fastmath: object = None) -> Operand:
    """The product of floats, rounded whatever `fastmath`."""
    return muli(lhs, rhs)


def divf(lhs: Operand, rhs: Operand, fastmath: object = None) -> Operand:
    """The quotient of floats, rounded whatever `fastmath`."""
    return as_value(lhs) / rhs


def andi(lhs: Operand, rhs: Operand) -> Operand:
    """The bits that both integers have."""
    return as_value(lhs) & rhs


def ori(lhs: Operand, rhs: Operand) -> Operand:
    """The bits that one of two integers has."""
    return as_value(lhs) | rhs


def xori(lhs: Operand, rhs: Operand) -> Operand:
    """Bitwise exclusive or of two integers."""
    return as_value(lhs) ^ rhs


def shli(lhs: Operand, rhs: Operand) -> Operand:
    """An integer whose bits are moved up."""
    return as_value(lhs) << rhs


def shrui(lhs: Operand, rhs: object) -> Operand:
    """An integer whose bits are moved down, with zeros in their place."""
    given = as_value(lhs)
    return convert(convert(given, _unsigned(given.dtype)) >> rhs, given.dtype)


def extui(out: object, in_: Operand) -> Operand:
    """The integer widened with zeros."""
    given = as_value(in_)
    return convert(convert(given, _unsigned(given.dtype)), _type(out))


def extsi(out: Any, in_: Operand) -> Operand:
    """A number as one of another width."""
    return convert(as_value(in_), _type(out))


trunci = extf = truncf = extsi


def maxnumf(lhs: object, rhs: object) -> Operand:
    """The larger of two floats; of a number and NaN the number."""
    return fmax(lhs, rhs)


def minnumf(lhs: object, rhs: object) -> Operand:
    """The smaller of two floats; of a number and NaN the number."""
    return fmin(lhs, rhs)


def maximumf(lhs: object, rhs: object) -> Operand:
    """The larger of two floats; NaN if one of them is."""
    return fmax(lhs, rhs, nan=True)


def minimumf(lhs: object, rhs: object) -> Operand:
    """The smaller of two floats; NaN if one of them is."""
    return fmin(lhs, rhs, nan=True)


def _type(type: Any) -> DType:
    return type if isinstance(type, DType) else dtype_of(type)


def _unsigned(dtype: DType) -> DType:
    return DTYPES[dtype.name.replace("Int", "Uint")] if dtype.signed else dtype


def _signed(dtype: DType) -> DType:
    return DTYPES[dtype.name.removeprefix("U").capitalize()] if dtype.unsigned else dtype
