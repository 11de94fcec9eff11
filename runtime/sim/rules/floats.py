# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rules for floating-point arithmetic and comparisons.

Sums, differences, products and quotients are rounded correctly to the nearest even number of the type. Fast-math
flags change nothing here, so a GPU may differ within their freedom.
"""

import operator
from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from xdsl.dialects import arith
from xdsl.ir import Operation

from ..events import Step
from ..translate import Rule, Rules, Translator
from ..values import Value, anywhere, choose, fused_multiply_add, narrow, varies

_FloatRule: TypeAlias = Callable[[Operation, Translator], Step]


def _arithmetic(function: Callable[..., Any]) -> Rule:
    """A rule for + - * and /. For bf16 they are double precision's, which its rounding makes right."""

    def rule(op: Operation, t: Translator) -> Step:
        native = t.kind(op.results[0]).dtype.kind == "f"
        return (elementwise(function) if native else in_double(function))(op, t)

    return rule


def elementwise(function: Callable[..., Any]) -> _FloatRule:
    """A rule for a function whose result NumPy gives in the type of the operands."""

    def rule(op: Operation, t: Translator) -> Step:
        t.kind(op.results[0])
        return t.compute(op.results[0], function, *op.operands)

    return rule


def in_double(function: Callable[..., Any]) -> _FloatRule:
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


def _make_ordered(pick: Callable[[Any, Any], Any], negative_first: bool) -> Callable[[Any, Any], Any]:
    """A minimum or maximum for which -0 is less than +0 (PTX ISA, min and max; IEEE 754-2019, section 9.6)."""

    def function(a: Any, b: Any) -> Any:
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
"""The greater of two numbers; of a number and NaN the number."""
MINIMUM_NUMBER = _make_ordered(np.fmin, negative_first=True)
"""The smaller of two numbers; of a number and NaN the number."""


def _is_unordered(a: Any, b: Any) -> Any:
    return (a != a) | (b != b)


FLOAT_COMPARISONS: tuple[Callable[[Any, Any], Any], ...] = (
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


def _compare(op: arith.CmpfOp, t: Translator) -> Step:
    function = FLOAT_COMPARISONS[op.predicate.value.data]

    def holds(a: Value, b: Value) -> Value:
        value = function(a, b)
        return value if varies(value) else bool(value)

    return t.compute(op.result, holds, op.lhs, op.rhs)


def _quotient(a: Any, b: Any) -> Any:
    return a / b


FLOATS: Rules = {
    arith.AddfOp: _arithmetic(operator.add),
    arith.SubfOp: _arithmetic(operator.sub),
    arith.MulfOp: _arithmetic(operator.mul),
    arith.DivfOp: _arithmetic(_quotient),
    arith.NegfOp: elementwise(operator.neg),
    arith.MaximumfOp: elementwise(MAXIMUM),
    arith.MinimumfOp: elementwise(MINIMUM),
    arith.MaxnumfOp: elementwise(MAXIMUM_NUMBER),
    arith.MinnumfOp: elementwise(MINIMUM_NUMBER),
    arith.CmpfOp: _compare,
}
