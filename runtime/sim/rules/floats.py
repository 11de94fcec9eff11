# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rules for floating-point arithmetic, comparisons and the math dialect.

Sums, differences, products, quotients, square roots and fused multiply-adds are rounded correctly to the
nearest even number of the type; other functions are computed in double precision and rounded. Fast-math flags
change nothing here, so a GPU may differ by what they allow (and by the error of its approximate
instructions).
"""

import operator
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from xdsl.dialects import arith, math
from xdsl.ir import Operation

from ...special import erf
from ..translate import Rule, Rules, Step, Translator
from ..values.rounding import fused_multiply_add, narrow
from ..values.values import anywhere, choose, varies
from ..warp import Warp

_FloatRule: TypeAlias = Callable[[Operation, Translator], Step]


def _arithmetic(function: Callable[..., Any]) -> Rule:
    """A rule for + - * and /. For bf16 they are double precision's, which its rounding makes right."""

    def rule(op: Operation, t: Translator) -> Step:
        native = t.kind(op.results[0]).dtype.kind == "f"
        return (_elementwise(function) if native else _in_double(function))(op, t)

    return rule


def _elementwise(function: Callable[..., Any]) -> _FloatRule:
    """A rule for a function whose result NumPy gives in the type of the operands."""

    def rule(op: Operation, t: Translator) -> Step:
        operands, result = t.slots(op.operands), t.slot(op.results[0])
        t.kind(op.results[0])
        if len(operands) == 2:
            left, right = operands

            def binary(warp: Warp) -> None:
                registers = warp.registers
                registers[result] = function(registers[left], registers[right])

            return binary

        def general(warp: Warp) -> None:
            registers = warp.registers
            registers[result] = function(*[registers[slot] for slot in operands])

        return general

    return rule


def _in_double(function: Callable[..., Any]) -> _FloatRule:
    """A rule for a function that is computed in double precision and rounded to the result's type."""

    def rule(op: Operation, t: Translator) -> Step:
        operands, result = t.slots(op.operands), t.slot(op.results[0])
        dtype = t.kind(op.results[0]).dtype

        def step(warp: Warp) -> None:
            registers = warp.registers
            value = function(*[np.asarray(registers[slot], np.float64) for slot in operands])
            registers[result] = narrow(value, dtype)

        return step

    return rule


def _ordered(pick: Callable[[Any, Any], Any], negative_first: bool) -> Callable[[Any, Any], Any]:
    """A minimum or maximum for which -0 is less than +0 (PTX ISA, min and max; IEEE 754-2019, section 9.6)."""

    def function(a: Any, b: Any) -> Any:
        zeros = (a == 0) & (b == 0)
        chosen = pick(a, b)
        if anywhere(zeros):
            first = np.signbit(a) == negative_first
            return choose(zeros, choose(first, a, b), chosen)[()]
        return chosen

    return function


MAXIMUM = _ordered(np.maximum, negative_first=False)
"""The greater of two numbers; NaN where one is NaN."""
MINIMUM = _ordered(np.minimum, negative_first=True)
"""The smaller of two numbers; NaN where one is NaN."""
MAXIMUM_NUMBER = _ordered(np.fmax, negative_first=False)
"""The greater of two numbers; of a number and NaN the number."""
MINIMUM_NUMBER = _ordered(np.fmin, negative_first=True)
"""The smaller of two numbers; of a number and NaN the number."""


def _fma(op: Operation, t: Translator) -> Step:
    a, b, c = t.slots(op.operands)
    result = t.slot(op.results[0])
    dtype = t.kind(op.results[0]).dtype

    def step(warp: Warp) -> None:
        registers = warp.registers
        registers[result] = fused_multiply_add(registers[a], registers[b], registers[c], dtype)

    return step


def _unordered(a: Any, b: Any) -> Any:
    return (a != a) | (b != b)


_COMPARISONS: tuple[Callable[[Any, Any], Any], ...] = (
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
    _unordered,
    lambda a, b: (a == b) | True,
)
"""The predicates of arith.cmpf in their order: false, oeq, ogt, oge, olt, ole, one, ord, ueq, ugt, ..., uno,
true.
"""


def _compare(op: arith.CmpfOp, t: Translator) -> Step:
    left, right, result = t.slot(op.lhs), t.slot(op.rhs), t.slot(op.result)
    function = _COMPARISONS[op.predicate.value.data]

    def step(warp: Warp) -> None:
        registers = warp.registers
        value = function(registers[left], registers[right])
        registers[result] = value if varies(value) else bool(value)

    return step


def _quotient(a: Any, b: Any) -> Any:
    return a / b


def _reciprocal_root(x: Any) -> Any:
    return 1 / np.sqrt(x)


def _round_half_away(x: Any) -> Any:
    whole = np.trunc(x)
    # An infinity less itself is NaN, and stays.
    return np.copysign(whole + np.where(np.abs(x - whole) >= 0.5, np.sign(x), 0.0), x)


FLOATS: Rules = {
    arith.AddfOp: _arithmetic(operator.add),
    arith.SubfOp: _arithmetic(operator.sub),
    arith.MulfOp: _arithmetic(operator.mul),
    arith.DivfOp: _arithmetic(_quotient),
    arith.NegfOp: _elementwise(operator.neg),
    arith.MaximumfOp: _elementwise(MAXIMUM),
    arith.MinimumfOp: _elementwise(MINIMUM),
    arith.MaxnumfOp: _elementwise(MAXIMUM_NUMBER),
    arith.MinnumfOp: _elementwise(MINIMUM_NUMBER),
    arith.CmpfOp: _compare,
    math.FmaOp: _fma,
    math.AbsFOp: _elementwise(np.abs),
    math.CopySignOp: _elementwise(np.copysign),
    math.SqrtOp: _in_double(np.sqrt),
    math.RsqrtOp: _in_double(_reciprocal_root),
    math.ExpOp: _in_double(np.exp),
    math.Exp2Op: _in_double(np.exp2),
    math.ExpM1Op: _in_double(np.expm1),
    math.LogOp: _in_double(np.log),
    math.Log2Op: _in_double(np.log2),
    math.Log10Op: _in_double(np.log10),
    math.Log1pOp: _in_double(np.log1p),
    math.SinOp: _in_double(np.sin),
    math.CosOp: _in_double(np.cos),
    math.TanOp: _in_double(np.tan),
    math.TanhOp: _in_double(np.tanh),
    math.ErfOp: _in_double(erf),
    math.PowFOp: _in_double(np.power),
    math.FloorOp: _in_double(np.floor),
    math.CeilOp: _in_double(np.ceil),
    math.TruncOp: _in_double(np.trunc),
    math.RoundOp: _in_double(_round_half_away),
    math.RoundEvenOp: _in_double(np.rint),
}
