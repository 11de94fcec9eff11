# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rules for constants, conversions between types, and select."""

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, FloatAttr, IntegerAttr
from xdsl.ir import Operation

from ....base.errors import Code
from ....dialects.arith.integer_range import wrap_signed
from ....dialects.arith.semantics import CHECKED
from ..events import Step
from ..faults import SimulationError, site_of
from ..translate import Rule, Rules, Translator
from ..values import Value, ValueKind, as_unsigned, kind_of, merge, narrow, varies
from ..warp import Warp


def _constant(op: arith.ConstantOp, t: Translator) -> None:
    kind = t.kind(op.result)
    attribute = op.value
    if isinstance(attribute, IntegerAttr):
        number = attribute.value.data
        t.constant(op.result, bool(number & 1) if kind.bits == 1 else wrap_signed(number, kind.bits))
    elif isinstance(attribute, FloatAttr):
        t.constant(op.result, kind.dtype.type(attribute.value.data))
    elif isinstance(attribute, DenseIntOrFPElementsAttr) and kind.count is not None:
        numbers: list[Any] = list(attribute.get_values())
        if not kind.is_float:
            numbers = [wrap_signed(int(n), kind.bits) for n in numbers]
        repeated = numbers * (kind.count if len(numbers) == 1 else 1)
        t.constant(op.result, np.array(repeated).astype(kind.dtype)[None, :])
    else:
        raise SimulationError(
            Code.SIM_UNSUPPORTED, f"the simulator has no constants such as {attribute}", site=site_of(op)
        )


def _select(op: arith.SelectOp, t: Translator) -> Step:
    condition, ours, theirs, result = t.slot(op.cond), t.slot(op.lhs), t.slot(op.rhs), t.slot(op.result)
    kind = kind_of(op.result.type)

    def step(warp: Warp) -> None:
        registers = warp.registers
        chosen = registers[condition]
        a, b = registers[ours], registers[theirs]
        if varies(chosen):
            registers[result] = merge(chosen, a, b, kind)
        else:
            registers[result] = a if chosen else b

    return step


def _convert(function: Callable[[Value, ValueKind, ValueKind], Value]) -> Rule:
    """A rule for an operation with one operand: `function` of the value, its kind and the result's kind."""

    def rule(op: Operation, t: Translator) -> Step:
        before, after = t.kind(op.operands[0]), t.kind(op.results[0])
        if CHECKED in op.attributes:
            return _checked(op, function, t)
        return t.compute(op.results[0], lambda value: function(value, before, after), op.operands[0])

    return rule


def _checked(op: Operation, function: Callable[[Value, ValueKind, ValueKind], Value], t: Translator) -> Step:
    """A conversion of integers, and a fault (E3209) where the result is another number."""
    before, after = t.kind(op.operands[0]), t.kind(op.results[0])
    operand, result, site = t.slot(op.operands[0]), t.slot(op.results[0]), site_of(op)

    def step(warp: Warp) -> None:
        value = warp.registers[operand]
        converted = warp.registers[result] = function(value, before, after)
        warp.fault_too_large(site, converted != value, value, after.bits)

    return step


def _resize(value: Value, before: ValueKind, after: ValueKind) -> Value:
    """Sign extension or truncation, also between i32 or i64 and index."""
    if varies(value):
        if before.bits == 1:
            value = -value.astype(np.int8)
        return (value & 1) != 0 if after.bits == 1 else value.astype(after.dtype)
    number = -int(value) if before.bits == 1 else value
    return bool(number & 1) if after.bits == 1 else wrap_signed(number, after.bits)


def _zero_extend(value: Value, before: ValueKind, after: ValueKind) -> Value:
    if varies(value):
        return value.astype(after.dtype) if before.bits == 1 else as_unsigned(value, before).astype(after.dtype)
    return wrap_signed(as_unsigned(value, before), after.bits)


def _round(value: Value, before: ValueKind, after: ValueKind) -> Value:
    """Converts one floating-point type to another, to nearest even; larger values become the greatest one of 8 bits."""
    if after.bits == 8:
        greatest = float(ml_dtypes.finfo(after.dtype).max)  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
        return narrow(np.clip(np.asarray(value, np.float64), -greatest, greatest), after.dtype)
    return narrow(value, after.dtype) if before.bits == 64 else value.astype(after.dtype)


def _from_signed(value: Value, before: ValueKind, after: ValueKind) -> Value:
    if before.bits == 1:
        value = -np.asarray(value, np.int8)  # a true i1 is -1
    return _to_float(value, before, after)


def _from_unsigned(value: Value, before: ValueKind, after: ValueKind) -> Value:
    return _to_float(value if before.bits == 1 else as_unsigned(value, before), before, after)


def _to_float(value: Value, before: ValueKind, after: ValueKind) -> Value:
    """An integer to the nearest float, rounded once."""
    number = np.asarray(value)
    if after.dtype.kind == "f":
        return number.astype(after.dtype)[()]
    if before.bits == 64:  # rounds numbers that f64 may not hold to odd multiples of 2**11, which it holds
        odd = (number | 0x800) - (number & 0x7FF)
        number = np.where((np.abs(number) >> 53 != 0) & (number & 0x7FF != 0), odd, number)
    return narrow(number.astype(np.float64), after.dtype)


def _to_integer(*, is_signed: bool) -> Callable[[Value, ValueKind, ValueKind], Value]:
    """Truncation towards zero, saturated to the range (PTX ISA, cvt.rzi). NaN becomes 0; from f64, or to 64 bits, it
    becomes the number whose upper bit alone is set. Fewer than 32 bits are those of 32 that are clamped.
    """

    def convert(value: Value, before: ValueKind, after: ValueKind) -> Value:
        low = -(1 << (after.bits - 1)) if is_signed else 0
        high = (1 << (after.bits - 1 if is_signed else after.bits)) - 1
        invalid = (-1 if is_signed else 1) << (max(after.bits, 32) - 1) if 64 in (before.bits, after.bits) else 0

        word = np.int64 if is_signed else np.uint64
        whole = np.trunc(np.asarray(value).astype(np.float64))
        inside = (whole > low) & (whole < float(high))  # float(high) may be one too large
        bounded = np.where(whole >= float(high), word(high), word(low))
        made = np.where(inside, np.where(inside, whole, 0.0).astype(word), bounded)
        made = np.where(np.isnan(whole), word(min(max(invalid, low), high)), made).astype(after.dtype)
        return made if varies(value) else made[()].item()

    return convert


def _bitcast(value: Value, before: ValueKind, after: ValueKind) -> Value:
    if before.count is None:
        if varies(value):
            return value.view(after.dtype)
        scalar = np.array([value], before.dtype).view(after.dtype)[0]
        return scalar if after.is_float else int(scalar)
    return np.ascontiguousarray(value).view(after.dtype)


BITCAST: Rule = _convert(_bitcast)
"""A value's bits as another type, elements of a vector regrouped where their widths differ."""

CASTS: Rules = {
    arith.ConstantOp: _constant,
    arith.SelectOp: _select,
    arith.IndexCastOp: _convert(_resize),
    arith.ExtSIOp: _convert(_resize),
    arith.TruncIOp: _convert(_resize),
    arith.ExtUIOp: _convert(_zero_extend),
    arith.ExtFOp: _convert(_round),
    arith.TruncFOp: _convert(_round),
    arith.SIToFPOp: _convert(_from_signed),
    arith.UIToFPOp: _convert(_from_unsigned),
    arith.FPToSIOp: _convert(_to_integer(is_signed=True)),
    arith.FPToUIOp: _convert(_to_integer(is_signed=False)),
    arith.BitcastOp: BITCAST,
}
