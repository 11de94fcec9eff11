# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The integer operations of `arith`: their values, the ranges of these, and the operands without a result; the values
of constants; and the effects of operations on memory, as far as xDSL lacks them.

Constant folding, the analyses of ranges, divisors, sums and lanes, the builder of kernels in Python and the simulator
all read this table. The source is MLIR's description of the dialect.
"""

import operator
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, TypeAlias

from xdsl import traits
from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, IntegerAttr
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.traits import EffectInstance

from ...layout.algebra.integers import maximum, minimum
from ..ptx.base import integer_bits
from . import integer_range as ranges
from .integer_range import Range, RangeOf, limits, reduce_range, wrap_signed

Function: TypeAlias = Callable[[Any, Any], Any]
"""A function of two integers of one kind: Python's, NumPy arrays, or those of an algebra or an analysis."""


@dataclass(frozen=True, slots=True)
class Undefined:
    """Operands for which an operation has no result.

    `holds` takes two signed integers, or arrays of them, and the bits of their type. `problem` is a template for
    messages, in which {bits} and {least} stand for the type's width and its least integer.
    """

    holds: Callable[[Any, Any, int], Any]
    problem: str
    hint: str = ""


@dataclass(frozen=True, slots=True)
class IntegerOperation:
    """A binary operation. Its result is `value`, reduced to the type; `range` is the range of `value`.

    Both take the operands without their signs where the operation is `unsigned`. An operation is `algebraic` if its
    value consists of operators that all kinds of integers have: an `Unknown`, a sum, the integers of a warp's lanes.
    """

    value: Function
    range: RangeOf
    unsigned: bool = False
    undefined: tuple[Undefined, ...] = ()
    algebraic: bool = True

    def result(self, a: int, b: int, bits: int) -> int | None:
        """The result for two signed integers of `bits` bits, as a signed one; None if it is undefined."""
        if any(case.holds(a, b, bits) for case in self.undefined):
            return None
        if self.unsigned:
            a, b = a & ((1 << bits) - 1), b & ((1 << bits) - 1)
        return wrap_signed(self.value(a, b), bits)

    def exact_range(self, a: Range, b: Range, bits: int) -> Range | None:
        """The range of the value for ranges of signed integers; None if nothing is known."""
        if self.unsigned:
            a, b = (reduce_range(operand, limits(bits, unsigned=True)) for operand in (a, b))
        return self.range(a, b, bits)


BY_ZERO = Undefined(lambda _a, b, _bits: b == 0, "division by zero")
OVERFLOW = Undefined(
    lambda a, b, bits: (b == -1) & (a == -(1 << (bits - 1))),
    "the quotient of {least} and -1 does not fit in {bits} bits",
)
TOO_FAR = Undefined(
    lambda _a, b, bits: (b < 0) | (b >= bits),
    "a shift by {bits} bits or more (or by a negative number) of a {bits}-bit integer",
    "limit the number of bits first",
)


def truncate_quotient(a: Any, b: Any) -> Any:
    """The quotient, rounded towards zero: one more than the one that is rounded down, where they differ."""
    return a // b + ((a % b != 0) & ((a < 0) != (b < 0)))


def remainder(a: object, b: object) -> Any:
    """The remainder of the quotient that is rounded towards zero, with the sign of the dividend."""
    return a - truncate_quotient(a, b) * b


def _rounded_up(a: Any, b: Any) -> Any:
    return a // b + (a % b != 0)


def _corners(function: Function) -> IntegerOperation:
    return IntegerOperation(function, ranges.corners(function))


def _shift(function: Function) -> IntegerOperation:
    return IntegerOperation(function, ranges.shift(function), undefined=(TOO_FAR,))


def _signed_division(function: Function, range: RangeOf | None = None) -> IntegerOperation:
    range = ranges.quotient(function) if range is None else range
    return IntegerOperation(function, range, undefined=(BY_ZERO, OVERFLOW), algebraic=False)


def _unsigned_division(function: Function, range: RangeOf | None = None) -> IntegerOperation:
    range = ranges.quotient(function) if range is None else range
    return IntegerOperation(function, range, unsigned=True, undefined=(BY_ZERO,))


_SHIFT_RIGHT = _shift(lambda a, b: a >> b)
_MINIMUM, _MAXIMUM = _corners(minimum), _corners(maximum)

INTEGER_OPERATIONS: Mapping[type[Operation], IntegerOperation] = MappingProxyType(
    {
        arith.AddiOp: IntegerOperation(lambda a, b: a + b, lambda a, b, _: (a[0] + b[0], a[1] + b[1])),
        arith.SubiOp: IntegerOperation(lambda a, b: a - b, lambda a, b, _: (a[0] - b[1], a[1] - b[0])),
        arith.MuliOp: _corners(lambda a, b: a * b),
        arith.DivSIOp: _signed_division(truncate_quotient),
        arith.DivUIOp: _unsigned_division(lambda a, b: a // b),
        arith.FloorDivSIOp: _signed_division(lambda a, b: a // b),
        arith.CeilDivSIOp: _signed_division(_rounded_up),
        arith.CeilDivUIOp: replace(_unsigned_division(_rounded_up), algebraic=False),
        arith.RemSIOp: _signed_division(remainder, ranges.remainder),
        arith.RemUIOp: _unsigned_division(lambda a, b: a % b, ranges.remainder),
        arith.AndIOp: IntegerOperation(lambda a, b: a & b, ranges.conjunction),
        arith.OrIOp: IntegerOperation(lambda a, b: a | b, ranges.disjunction),
        arith.XOrIOp: IntegerOperation(lambda a, b: a ^ b, ranges.exclusive),
        arith.ShLIOp: _shift(lambda a, b: a << b),
        arith.ShRSIOp: _SHIFT_RIGHT,
        arith.ShRUIOp: replace(_SHIFT_RIGHT, unsigned=True),
        arith.MinSIOp: _MINIMUM,
        arith.MaxSIOp: _MAXIMUM,
        arith.MinUIOp: replace(_MINIMUM, unsigned=True),
        arith.MaxUIOp: replace(_MAXIMUM, unsigned=True),
    }
)

CHECKED = "checked"
"""The attribute of a sum, a product or a cast whose exact result must fit its type: that of an index or a distance in
memory. Where it does not, the simulator reports a fault; the instructions are the same.
"""

SUMS = (arith.AddiOp, arith.SubiOp, arith.MuliOp, arith.ShLIOp)
"""The operations that sums of multiples consist of. Their values may exceed the type of the result."""

COMPARISONS: tuple[tuple[Function, bool], ...] = (
    (operator.eq, False), (operator.ne, False),
    (operator.lt, False), (operator.le, False), (operator.gt, False), (operator.ge, False),
    (operator.lt, True), (operator.le, True), (operator.gt, True), (operator.ge, True),
)  # fmt: skip
"""The predicates of `arith.cmpi` by number, eq, ne, slt, sle, sgt, sge, ult, ule, ugt, uge, and which are unsigned."""


def compare(predicate: int, a: int, b: int, bits: int) -> bool:
    """The result of `arith.cmpi` on two signed integers of `bits` bits."""
    function, is_unsigned = COMPARISONS[predicate]
    mask = (1 << bits) - 1
    return function(a & mask, b & mask) if is_unsigned else function(a, b)


_PURE = (arith.RemUIOp, arith.ExtSIOp)
"""Arithmetic without effects that xDSL does not mark as such."""


def get_effects(op: Operation) -> Set[EffectInstance] | None:
    """The effects of an operation; None if they are not known."""
    return frozenset() if isinstance(op, _PURE) else traits.get_effects(op)


def is_side_effect_free(op: Operation) -> bool:
    """Whether an operation is known to do nothing to memory."""
    return isinstance(op, _PURE) or op.name == "cf.assert" or traits.is_side_effect_free(op)


def int_width(type: Attribute) -> int | None:
    """The width of an integer type in bits; 64 for `index`; None for other types."""
    return 64 if isinstance(type, IndexType) else integer_bits(type)


def constant_of(value: SSAValue) -> int | None:
    """The value of an integer constant, as a signed integer of its type; None for anything else."""
    owner = value.owner
    if isinstance(owner, arith.ConstantOp) and isinstance(owner.value, IntegerAttr):
        return wrap_signed(owner.value.value.data, integer_bits(value.type) or 64)
    return None
