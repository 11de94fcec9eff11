# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The rules of operations that compute with floating-point numbers, in exact arithmetic. Others only move, choose or
compare numbers by their bit patterns, and have one rule for both.
"""

import operator
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

import numpy as np
from xdsl.dialects import arith, math, vector
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, FloatAttr, IntegerAttr
from xdsl.ir import Operation

from ....base.element_types import BY_PTX
from ....base.errors import Code
from ....dialects import ptx
from ...engine import NumPyArray, numpy_type
from ...exact.number import ExactArray, exact_array
from ..events import Step
from ..faults import SimulationError, site_of
from ..rules import rule_of
from ..translate import Rule, Translator
from ..values import Value, as_unsigned, kind_of
from ..warp import Warp
from .patterns import Table

Function: TypeAlias = Callable[..., Any]


def table_of(t: Translator) -> Table:
    """The patterns of a launch that runs in exact arithmetic."""
    assert t.launch.exact is not None
    return t.launch.exact


def _make_rule(function: Function) -> Rule:
    """A rule for a function of numbers: its result is placed in the result's type."""

    def rule(op: Operation, t: Translator) -> Step:
        table, dtype = table_of(t), t.kind(op.results[0]).dtype

        def placed(*values: Value) -> Value:
            return table.values(function(*map(table.numbers, values)), dtype)

        return t.compute(op.results[0], placed, *op.operands)

    return rule


def _same(x: object) -> Value:
    return x


def _quotient(a: Value, b: Value) -> Value:
    return a / b


def _power(a: Value, b: Value) -> Value:
    return a**b


def _reciprocal(x: Value) -> Value:
    return 1 / x


def _reciprocal_root(x: Value) -> Value:
    return 1 / np.sqrt(x)


def _fma(a: ExactArray, b: ExactArray, c: ExactArray) -> Value:
    return a * b + c


def _copied_sign(a: ExactArray, b: ExactArray) -> Value:
    return np.where(np.signbit(b), -np.abs(a), np.abs(a))


def _away(x: ExactArray) -> Value:
    return np.where(x < 0, np.ceil(x - 0.5), np.floor(x + 0.5))


def _error_function(x: ExactArray) -> Value:
    return np.frompyfunc(lambda number: number.erf(), 1, 1)(np.asarray(x)).view(ExactArray)


def _from_integer(op: arith.SIToFPOp | arith.UIToFPOp, t: Translator) -> Step:
    table, dtype, before = table_of(t), t.kind(op.results[0]).dtype, t.kind(op.operands[0])
    is_signed = isinstance(op, arith.SIToFPOp)

    def placed(value: Value) -> Value:
        if before.bits == 1:
            value = (-1 if is_signed else 1) * np.asarray(value, np.int8)
        elif not is_signed:
            value = as_unsigned(value, before)
        return table.values(exact_array(np.asarray(value)), dtype)

    return t.compute(op.results[0], placed, op.operands[0])


def _to_integer(op: arith.FPToSIOp | arith.FPToUIOp, t: Translator) -> Step:
    """A number that is whole becomes that integer, wherever its pattern is."""
    source, plain = t.slot(op.operands[0]), rule_of(type(op))
    table, dtype = table_of(t), t.kind(op.operands[0]).dtype
    assert plain is not None
    step = plain(op, t)
    assert callable(step)

    def exact(warp: Warp) -> None:
        before = warp.registers[source]
        wide = np.asarray(np.trunc(table.numbers(before)).astype(np.int64), np.float64).astype(dtype)
        finite = np.isfinite(np.asarray(before).astype(np.float64))
        warp.registers[source] = np.where(finite, wide, before)[()]
        step(warp)
        warp.registers[source] = before

    return exact


def _reduction(op: vector.ReductionOp, t: Translator) -> Value:
    name = str(op.kind.data)
    if name not in ("add", "mul") or not t.kind(op.vector).is_float:
        return _plain(op, t)
    dtype, table, combine = t.kind(op.dest).dtype, table_of(t), {"add": np.add, "mul": np.multiply}[name]

    def reduced(values: Value, *start: Value) -> Value:
        total = combine.reduce(table.numbers(values), axis=1)
        for value in start:
            total = combine(total, table.numbers(value))
        placed = table.values(exact_array(total), dtype)
        return placed[0] if np.shape(placed) == (1,) else placed

    return t.compute(op.dest, reduced, *op.operands)


_APPROXIMATE: Mapping[str, Function] = {
    "ex2": np.exp2, "lg2": np.log2, "rcp": _reciprocal, "rsqrt": _reciprocal_root, "sqrt": np.sqrt,
    "sin": np.sin, "cos": np.cos, "tanh": np.tanh,
}  # fmt: skip


def _approximate(op: ptx.ApproximateOp, t: Translator) -> Value:
    return _make_rule(_APPROXIMATE[op.FUNCTION])(op, t)


def _cvt(op: ptx.CvtOp, t: Translator) -> Step:
    """Conversions change nothing but the type; those to 8 bits are packed in an integer."""
    table, modifiers = table_of(t), op.form.data.split(".")
    if modifiers[0] == "rs":
        raise SimulationError(
            Code.SIM_UNSUPPORTED, "the conversion rounds by random bits, and exact numbers are not rounded",
            "convert with the rounding rn to run the kernel in exact arithmetic", site=site_of(op),
        )  # fmt: skip
    target, source = (BY_PTX[name.removesuffix("x2")] for name in modifiers[-2:])

    def numbers(given: tuple[Value, ...]) -> ExactArray:
        if len(given) == 2:
            columns = np.broadcast_arrays(*[np.asarray(table.numbers(np.atleast_1d(x))) for x in reversed(given)])
            return exact_array(np.stack(columns, axis=1))
        if source.bits == 8:
            words = np.atleast_1d(np.asarray(given[0], np.int16))
            return table.numbers(words.view(np.uint8).reshape(-1, 2).view(numpy_type(source)))
        return table.numbers(given[0])

    def converted(*given: Value) -> Value:
        if target.stored:
            return given[0]
        x = numbers(given)
        placed = table.values(np.maximum(x, 0) if "relu" in modifiers else x, numpy_type(target))
        if target.bits != 8:
            return placed
        words = np.ascontiguousarray(placed).view(np.int16)[:, 0]
        return int(words[0]) if len(words) == 1 else words

    return t.compute(op.result, converted, *op.values)


def _inline(op: ptx.InlineOp, t: Translator) -> Value:
    floats = [value for value in (*op.args, *op.res) if t.kind(value).is_float]
    if floats:
        raise SimulationError(
            Code.SIM_UNSUPPORTED,
            "the function for the PTX text computes with floats, not with exact numbers",
            "use the operation of the instruction to run the kernel in exact arithmetic",
            site=site_of(op),
        )
    return _plain(op, t)


def _plain(op: Operation, t: Translator) -> Value:
    rule = rule_of(type(op))
    assert rule is not None
    return rule(op, t)


_FUNCTIONS: Mapping[type[Operation], Function] = {
    arith.AddfOp: operator.add, arith.SubfOp: operator.sub, arith.MulfOp: operator.mul, arith.DivfOp: _quotient,
    arith.NegfOp: operator.neg, arith.ExtFOp: _same, arith.TruncFOp: _same,
    math.FmaOp: _fma, vector.FMAOp: _fma, math.AbsFOp: np.abs, math.CopySignOp: _copied_sign,
    math.SqrtOp: np.sqrt, math.RsqrtOp: _reciprocal_root, math.ExpOp: np.exp, math.Exp2Op: np.exp2,
    math.ExpM1Op: np.expm1, math.LogOp: np.log, math.Log2Op: np.log2, math.Log10Op: np.log10, math.Log1pOp: np.log1p,
    math.SinOp: np.sin, math.CosOp: np.cos, math.TanOp: np.tan, math.TanhOp: np.tanh, math.ErfOp: _error_function,
    math.PowFOp: _power, math.FloorOp: np.floor, math.CeilOp: np.ceil, math.TruncOp: np.trunc,
    math.RoundOp: _away, math.RoundEvenOp: np.rint,
}  # fmt: skip
_RULES: Mapping[type[Operation], Rule] = {
    **{kind: _make_rule(function) for kind, function in _FUNCTIONS.items()},
    arith.SIToFPOp: _from_integer, arith.UIToFPOp: _from_integer,
    arith.FPToSIOp: _to_integer, arith.FPToUIOp: _to_integer, vector.ReductionOp: _reduction,
    ptx.ApproximateOp: _approximate, ptx.CvtOp: _cvt, ptx.InlineOp: _inline,
}  # fmt: skip


def exact_rule_of(kind: type[Operation]) -> Rule | None:
    """The rule of a class of operations, as `rule_of`."""
    return next((_RULES[base] for base in kind.__mro__ if base in _RULES), rule_of(kind))


def table_for(kernel: Operation, given: Iterable[NumPyArray]) -> Table:
    """Patterns, of which those of all numbers that a kernel spells or is given stand for these, also those of its
    integers.
    """
    table = Table()
    for inner in kernel.walk():
        if isinstance(inner, arith.ConstantOp):
            _keep(inner, table)
    for values in given:
        table.keep(values)
    return table


def _keep(op: arith.ConstantOp, table: Table) -> None:
    kind, attribute = kind_of(op.result.type), op.value
    if isinstance(attribute, DenseIntOrFPElementsAttr):
        numbers: list[Any] = list(attribute.get_values())
    else:
        assert isinstance(attribute, IntegerAttr | FloatAttr)
        numbers = [attribute.value.data]
    if kind is not None and kind.is_float:
        table.keep(np.array(numbers).astype(kind.dtype))
        return
    words = np.array([int(number) & 0xFFFFFFFF for number in numbers], np.uint32)
    table.keep(words.view(np.float32))
    table.keep(words.view(np.float16))
