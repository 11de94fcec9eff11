# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rules for arithmetic and comparisons of integers and floating-point numbers.

Integer arithmetic wraps, as MLIR's arith dialect says. Floating-point sums, differences, products and quotients are
rounded correctly to the nearest even number of the type. Fast-math flags change nothing here, so a GPU may differ
within their freedom.
"""

import operator
from collections.abc import Callable
from functools import partial
from typing import TypeAlias

import numpy as np
from xdsl.dialects import arith, math
from xdsl.ir import Operation

from ....base.errors import Code
from ....dialects.arith.integer_range import wrap_signed
from ....dialects.arith.semantics import CHECKED, COMPARISONS, INTEGER_OPERATIONS
from ..events import Step
from ..faults import site_of
from ..translate import Rule, Rules, Translator
from ..values import (
    Value,
    ValueKind,
    anywhere,
    as_unsigned,
    choose,
    fused_multiply_add,
    narrow,
    signed_view,
    varies,
)
from ..warp import Warp

_FloatRule: TypeAlias = Callable[[Operation, Translator], Step]


def _binary(op: Operation, t: Translator) -> Step:
    """The rule of all operations in the table."""
    left, right, result = t.slot(op.operands[0]), t.slot(op.operands[1]), t.slot(op.results[0])
    operation, kind, site = INTEGER_OPERATIONS[type(op)], t.kind(op.results[0]), site_of(op)
    function, unsigned, undefined, bits = operation.value, operation.unsigned, operation.undefined, kind.bits
    is_bool = bits == 1
    if is_bool:
        kind = ValueKind(np.dtype(np.int8), 8)
    half, full = 1 << (bits - 1), (1 << bits) - 1
    check = _make_check(op, bits) if CHECKED in op.attributes else None
    constant = t.initial[right]
    if type(constant) is int:  # only the cases that some left operand makes true
        undefined = [case for case in undefined if case.holds(-half, constant, bits)]

    def step(warp: Warp) -> None:
        registers = warp.registers
        a, b = registers[left], registers[right]
        if is_bool:
            a, b = _sign(a), _sign(b)
        for case in undefined:
            bad = case.holds(a, b, bits)
            if bad is not False and anywhere(bad):
                text = case.problem.format(bits=bits, least=-half)
                warp.fault_where(_by_lane(bad), Code.SIM_ARITHMETIC, site, text, case.hint)
                b = choose(bad, kind.dtype.type(1), b)  # in lanes that are not active
        if unsigned:
            a, b = as_unsigned(a, kind), as_unsigned(b, kind)
        if check is not None:
            check(warp, a, b)
        value = function(a, b)
        if is_bool:
            registers[result] = value & 1 != 0
        elif type(value) is int:
            registers[result] = ((value + half) & full) - half
        else:
            registers[result] = signed_view(value, kind) if unsigned else value

    return step


def _make_check(op: Operation, bits: int) -> Callable[[Warp, Value, Value], None]:
    """A fault (E3209) where the exact result of a sum, a product or a shift to the left does not fit its type."""
    function, site, half = INTEGER_OPERATIONS[type(op)].value, site_of(op), 1 << (bits - 1)
    small, small_right = bits // 4, 4 if isinstance(op, arith.ShLIOp) else bits // 4

    def check(warp: Warp, a: Value, b: Value) -> None:
        if varies(a) or varies(b):
            large = anywhere((a >> small != 0) | (b >> small_right != 0))
            a, b = (x.astype(object if large else np.int64) if varies(x) else x for x in (a, b))
        exact = function(a, b)
        warp.fault_too_large(site, (exact < -half) | (exact >= half), exact, bits)

    return check


def _sign(value: Value) -> Value:
    """An i1 as a signed integer: true is -1."""
    return -value.astype(np.int8) if varies(value) else -int(value)


def _by_lane(bad: object) -> Value:
    """A vector's elementwise condition as one per lane."""
    return bad.any(axis=1) if varies(bad) and bad.ndim == 2 else bad


def _make_extended(*, unsigned: bool, product: bool) -> Rule:
    """A rule for an operation with a low and a high (or carry) result, by way of Python's integers."""

    def rule(op: Operation, t: Translator) -> Step:
        (left, right), (low, high) = t.slots(op.operands), t.slots(op.results)
        kind, carry = t.kind(op.results[0]), t.kind(op.results[1])

        def both(a: int, b: int) -> tuple[int, int]:
            if unsigned:
                a, b = a & ((1 << kind.bits) - 1), b & ((1 << kind.bits) - 1)
            whole = a * b if product else a + b
            return wrap_signed(whole, kind.bits), wrap_signed(whole >> kind.bits, carry.bits)

        def step(warp: Warp) -> None:
            a, b = warp.registers[left], warp.registers[right]
            if type(a) is int and type(b) is int:
                lower, upper = both(a, b)
                warp.registers[low], warp.registers[high] = lower, bool(upper) if carry.bits == 1 else upper
                return
            x, y = np.broadcast_arrays(a, b)
            pairs = [both(int(i), int(j)) for i, j in zip(x.ravel(), y.ravel(), strict=True)]
            warp.registers[low] = np.array([p[0] for p in pairs], kind.dtype).reshape(x.shape)
            warp.registers[high] = np.array([p[1] for p in pairs]).astype(carry.dtype).reshape(x.shape)

        return step

    return rule


def _absolute(op: math.AbsIOp, t: Translator) -> Step:
    bits = t.kind(op.results[0]).bits

    def absolute(x: Value) -> Value:
        return wrap_signed(abs(x), bits) if type(x) is int else abs(x)

    return t.compute(op.results[0], absolute, op.operands[0])


def _make_count(function: Callable[[int, int], int]) -> Rule:
    """A rule for a number of bits: a function of an integer without a sign and of its width."""

    def rule(op: Operation, t: Translator) -> Step:
        kind = t.kind(op.results[0])
        mask = (1 << kind.bits) - 1

        def count(x: Value) -> Value:
            if type(x) is int:
                return wrap_signed(function(x & mask, kind.bits), kind.bits)
            counts = [function(int(i) & mask, kind.bits) for i in np.asarray(x).ravel()]
            return np.array(counts).astype(kind.dtype).reshape(np.shape(x))

        return t.compute(op.results[0], count, op.operands[0])

    return rule


def _compare_integers(op: arith.CmpiOp, t: Translator) -> Step:
    left, right, result = t.slot(op.lhs), t.slot(op.rhs), t.slot(op.result)
    function, unsigned = COMPARISONS[op.predicate.value.data]
    kind = t.kind(op.lhs)
    negate = kind.bits == 1 and not unsigned  # the signed value of a true i1 is -1

    def step(warp: Warp) -> None:
        registers = warp.registers
        a, b = registers[left], registers[right]
        if negate:
            a, b = b, a
        elif unsigned and kind.bits > 1:
            a, b = as_unsigned(a, kind), as_unsigned(b, kind)
        value = function(a, b)
        registers[result] = value if varies(value) else bool(value)

    return step


def _arithmetic(function: Callable[..., object]) -> Rule:
    """A rule for + - * and /. For bf16 they are double precision's, which its rounding makes right."""

    def rule(op: Operation, t: Translator) -> Step:
        native = t.kind(op.results[0]).dtype.kind == "f"
        return (elementwise(function) if native else in_double(function))(op, t)

    return rule


def elementwise(function: Callable[..., object]) -> _FloatRule:
    """A rule for a function whose result NumPy gives in the type of the operands."""

    def rule(op: Operation, t: Translator) -> Step:
        t.kind(op.results[0])
        return t.compute(op.results[0], function, *op.operands)

    return rule


def in_double(function: Callable[..., object]) -> _FloatRule:
    """A rule for a function that is computed in double precision and rounded to the result's type."""

    def rule(op: Operation, t: Translator) -> Step:
        dtype = t.kind(op.results[0]).dtype

        def rounded(*values: Value) -> Value:
            return narrow(function(*[np.asarray(value, np.float64) for value in values]), dtype)

        return t.compute(op.results[0], rounded, *op.operands)

    return rule


def fma(op: Operation, t: Translator) -> Step:
    """The rule of a * b + c, rounded once."""
    dtype = t.kind(op.results[0]).dtype
    return t.compute(op.results[0], partial(fused_multiply_add, dtype=dtype), *op.operands)


def _make_ordered(pick: Callable[[Value, Value], object], negative_first: bool) -> Callable[[Value, Value], Value]:
    """A minimum or maximum for which -0 is less than +0 (PTX ISA, min and max; IEEE 754-2019, section 9.6)."""

    def function(a: Value, b: object) -> Value:
        zeros = (a == 0) & (b == 0)
        chosen = pick(a, b)
        if anywhere(zeros):
            first = np.signbit(a) == negative_first
            return choose(zeros, choose(first, a, b), chosen)[()]
        return chosen

    return function


MAXIMUM = _make_ordered(np.maximum, negative_first=False)
"""The greater of two numbers; NaN where one is NaN."""
MINIMUM = _make_ordered(np.minimum, negative_first=True)
"""The smaller of two numbers; NaN where one is NaN."""
MAXIMUM_NUMBER = _make_ordered(np.fmax, negative_first=False)
"""The greater of two numbers; NaN beside a number is ignored."""
MINIMUM_NUMBER = _make_ordered(np.fmin, negative_first=True)
"""The smaller of two numbers; NaN beside a number is ignored."""


def _is_unordered(a: object, b: object) -> bool:
    return (a != a) | (b != b)


FLOAT_COMPARISONS: tuple[Callable[[Value, Value], Value], ...] = (
    lambda a, b: (a == b) & False,
    lambda a, b: a == b,
    lambda a, b: a > b,
    lambda a, b: a >= b,
    lambda a, b: a < b,
    lambda a, b: a <= b,
    lambda a, b: (a < b) | (a > b),
    lambda a, b: (a == a) & (b == b),
    lambda a, b: np.logical_not((a < b) | (a > b)),
    lambda a, b: np.logical_not(a <= b),
    lambda a, b: np.logical_not(a < b),
    lambda a, b: np.logical_not(a >= b),
    lambda a, b: np.logical_not(a > b),
    lambda a, b: a != b,
    _is_unordered,
    lambda a, b: (a == b) | True,
)
"""The predicates of arith.cmpf in their order: false, oeq, ogt, oge, olt, ole, one, ord, ueq, ugt, ..., uno,
true.
"""


def _compare_floats(op: arith.CmpfOp, t: Translator) -> Step:
    function = FLOAT_COMPARISONS[op.predicate.value.data]

    def holds(a: Value, b: Value) -> Value:
        value = function(a, b)
        return value if varies(value) else bool(value)

    return t.compute(op.result, holds, op.lhs, op.rhs)


def _quotient(a: Value, b: Value) -> Value:
    return a / b


ARITHMETIC: Rules = {
    **dict.fromkeys(INTEGER_OPERATIONS, _binary),
    arith.AddUIExtendedOp: _make_extended(unsigned=True, product=False),
    arith.MulUIExtendedOp: _make_extended(unsigned=True, product=True),
    arith.MulSIExtendedOp: _make_extended(unsigned=False, product=True),
    arith.CmpiOp: _compare_integers,
    math.AbsIOp: _absolute,
    math.CtPopOp: _make_count(lambda x, bits: x.bit_count()),
    math.CountLeadingZerosOp: _make_count(lambda x, bits: bits - x.bit_length()),
    math.CountTrailingZerosOp: _make_count(lambda x, bits: (x & -x).bit_length() - 1 if x else bits),
    arith.AddfOp: _arithmetic(operator.add),
    arith.SubfOp: _arithmetic(operator.sub),
    arith.MulfOp: _arithmetic(operator.mul),
    arith.DivfOp: _arithmetic(_quotient),
    arith.NegfOp: elementwise(operator.neg),
    arith.MaximumfOp: elementwise(MAXIMUM),
    arith.MinimumfOp: elementwise(MINIMUM),
    arith.MaxnumfOp: elementwise(MAXIMUM_NUMBER),
    arith.MinnumfOp: elementwise(MINIMUM_NUMBER),
    arith.CmpfOp: _compare_floats,
}
