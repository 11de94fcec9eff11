# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rules for integer arithmetic and comparisons. Arithmetic wraps, as MLIR's arith dialect says."""

from collections.abc import Callable
from typing import Any

import numpy as np
from xdsl.dialects import arith, math
from xdsl.ir import Operation

from ....base.errors import Code as ErrorCode
from ..faults import Site, site_of
from ..translate import Rule, Rules, Step, Translator
from ..values.values import Kind, Value, as_unsigned, choose, signed_view, varies, wrap
from ..warp import Warp

Check = Callable[[Warp, Site, Any, Any, Kind], tuple[Any, Any]]
"""Refuses operands that have no result, and replaces them in lanes that are not active."""


def _binary(function: Callable[[Any, Any], Any], *, unsigned: bool = False, check: Check | None = None) -> Rule:
    """A rule for `function` of two integers; `unsigned` reads the operands so."""

    def rule(op: Operation, t: Translator) -> Step:
        left, right, result = t.slot(op.operands[0]), t.slot(op.operands[1]), t.slot(op.results[0])
        kind, site = t.kind(op.results[0]), site_of(op)
        bits = kind.bits
        if bits == 1:
            return _on_bools(function, left, right, result, site, check, unsigned)
        half, full = 1 << (bits - 1), (1 << bits) - 1

        def step(warp: Warp) -> None:
            registers = warp.registers
            a, b = registers[left], registers[right]
            if check is not None:
                a, b = check(warp, site, a, b, kind)
            if unsigned:
                a, b = as_unsigned(a, kind), as_unsigned(b, kind)
            value = function(a, b)
            if type(value) is int:
                registers[result] = ((value + half) & full) - half
            else:
                registers[result] = signed_view(value, kind) if unsigned else value

        return step

    return rule


def _on_bools(
    function: Callable[[Any, Any], Any],
    left: int,
    right: int,
    result: int,
    site: Site,
    check: Check | None,
    unsigned: bool,
) -> Step:
    """The same on i1, whose signed values are 0 and -1, by way of 8-bit integers."""
    kind = Kind(np.dtype(np.int8), 8)

    def widen(value: Value) -> Value:
        sign = 1 if unsigned else -1
        return value.astype(np.int8) * np.int8(sign) if varies(value) else sign * int(value)

    def step(warp: Warp) -> None:
        registers = warp.registers
        a, b = widen(registers[left]), widen(registers[right])
        if check is not None:
            a, b = check(warp, site, a, b, kind)
        bit = function(a, b) & 1
        registers[result] = bit != 0

    return step


def _nonzero(warp: Warp, site: Site, a: Value, b: Value, kind: Kind) -> tuple[Value, Value]:
    zero = b == 0
    if np.any(zero):
        warp.fault_where(_by_lane(zero), ErrorCode.SIM_ARITHMETIC, site, "division by zero")
        b = choose(zero, kind.dtype.type(1), b)
    return a, b


def _divisible(warp: Warp, site: Site, a: Value, b: Value, kind: Kind) -> tuple[Value, Value]:
    a, b = _nonzero(warp, site, a, b, kind)
    overflow = (b == -1) & (a == -(1 << (kind.bits - 1)))
    if np.any(overflow):
        text = f"the quotient of {-(1 << (kind.bits - 1))} and -1 does not fit in {kind.bits} bits"
        warp.fault_where(_by_lane(overflow), ErrorCode.SIM_ARITHMETIC, site, text)
        a = choose(overflow, kind.dtype.type(0), a)
    return a, b


def _shiftable(warp: Warp, site: Site, a: Value, b: Value, kind: Kind) -> tuple[Value, Value]:
    beyond = (b < 0) | (b >= kind.bits)
    if np.any(beyond):
        text = f"a shift by {kind.bits} bits or more (or by a negative number) of a {kind.bits}-bit integer"
        warp.fault_where(_by_lane(beyond), ErrorCode.SIM_ARITHMETIC, site, text, "limit the number of bits first")
        b = choose(beyond, kind.dtype.type(0), b)
    return a, b


def _by_lane(bad: Any) -> Any:
    """A vector's elementwise condition as one per lane."""
    return bad.any(axis=1) if varies(bad) and bad.ndim == 2 else bad


def _truncated(a: Any, b: Any) -> Any:
    if type(a) is int and type(b) is int:
        quotient = abs(a) // abs(b)
        return quotient if (a < 0) == (b < 0) else -quotient
    return (a - np.fmod(a, b)) // b


def _remainder(a: Any, b: Any) -> Any:
    if type(a) is int and type(b) is int:
        return a - b * _truncated(a, b)
    return np.fmod(a, b)


def _least(a: Any, b: Any) -> Any:
    return min(a, b) if type(a) is int and type(b) is int else np.minimum(a, b)


def _greatest(a: Any, b: Any) -> Any:
    return max(a, b) if type(a) is int and type(b) is int else np.maximum(a, b)


def _extended(signed: bool, product: bool) -> Rule:
    """A rule for an operation with a low and a high (or carry) result, by way of Python's integers."""

    def rule(op: Operation, t: Translator) -> Step:
        (left, right), (low, high) = t.slots(op.operands), t.slots(op.results)
        kind, carry = t.kind(op.results[0]), t.kind(op.results[1])

        def both(a: int, b: int) -> tuple[int, int]:
            if not signed:
                a, b = a & ((1 << kind.bits) - 1), b & ((1 << kind.bits) - 1)
            whole = a * b if product else a + b
            return wrap(whole, kind.bits), wrap(whole >> kind.bits, carry.bits)

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
    source, result, bits = t.slot(op.operands[0]), t.slot(op.results[0]), t.kind(op.results[0]).bits

    def step(warp: Warp) -> None:
        value = abs(warp.registers[source])
        warp.registers[result] = wrap(value, bits) if type(value) is int else value

    return step


_COMPARISONS: tuple[tuple[Callable[[Any, Any], Any], bool], ...] = (
    (lambda a, b: a == b, False),
    (lambda a, b: a != b, False),
    (lambda a, b: a < b, False),
    (lambda a, b: a <= b, False),
    (lambda a, b: a > b, False),
    (lambda a, b: a >= b, False),
    (lambda a, b: a < b, True),
    (lambda a, b: a <= b, True),
    (lambda a, b: a > b, True),
    (lambda a, b: a >= b, True),
)
"""The predicates of arith.cmpi in their order: eq, ne, slt, sle, sgt, sge, ult, ule, ugt, uge."""


def _compare(op: arith.CmpiOp, t: Translator) -> Step:
    left, right, result = t.slot(op.lhs), t.slot(op.rhs), t.slot(op.result)
    function, unsigned = _COMPARISONS[op.predicate.value.data]
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


INTEGERS: Rules = {
    arith.AddiOp: _binary(lambda a, b: a + b),
    arith.SubiOp: _binary(lambda a, b: a - b),
    arith.MuliOp: _binary(lambda a, b: a * b),
    arith.DivSIOp: _binary(_truncated, check=_divisible),
    arith.DivUIOp: _binary(lambda a, b: a // b, unsigned=True, check=_nonzero),
    arith.FloorDivSIOp: _binary(lambda a, b: a // b, check=_divisible),
    arith.CeilDivSIOp: _binary(lambda a, b: a // b + (a % b != 0), check=_divisible),
    arith.CeilDivUIOp: _binary(lambda a, b: a // b + (a % b != 0), unsigned=True, check=_nonzero),
    arith.RemSIOp: _binary(_remainder, check=_divisible),
    arith.RemUIOp: _binary(lambda a, b: a % b, unsigned=True, check=_nonzero),
    arith.MinSIOp: _binary(_least),
    arith.MaxSIOp: _binary(_greatest),
    arith.MinUIOp: _binary(_least, unsigned=True),
    arith.MaxUIOp: _binary(_greatest, unsigned=True),
    arith.AndIOp: _binary(lambda a, b: a & b),
    arith.OrIOp: _binary(lambda a, b: a | b),
    arith.XOrIOp: _binary(lambda a, b: a ^ b),
    arith.ShLIOp: _binary(lambda a, b: a << b, check=_shiftable),
    arith.ShRSIOp: _binary(lambda a, b: a >> b, check=_shiftable),
    arith.ShRUIOp: _binary(lambda a, b: a >> b, unsigned=True, check=_shiftable),
    arith.AddUIExtendedOp: _extended(signed=False, product=False),
    arith.MulUIExtendedOp: _extended(signed=False, product=True),
    arith.MulSIExtendedOp: _extended(signed=True, product=True),
    arith.CmpiOp: _compare,
    math.AbsIOp: _absolute,
}
