# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What is wrong with the number that an operation has produced: NaN, infinity, an index that wraps, a conversion that
loses its value, a difference that cancels almost all digits of its operands.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, cast

import ml_dtypes
import numpy as np
from numpy.typing import NDArray
from xdsl.dialects import arith, math, scf, vector
from xdsl.ir import Operation, SSAValue

from ...base.errors import Code
from ...dialects import ptx
from ...dialects.ptx import PtxOp
from ...dialects.tile import YieldOp
from ..engine import NumPyType
from .translate import Translator
from .values import Value, ValueKind, as_unsigned, kind_of
from .warp import Warp

LOST = 3, 4
"""A difference cancels too much that loses at least this part of the digits of its type."""
Bad = tuple[NDArray[np.bool_], Code, str, str]
"""The lanes in which something is wrong, the fault, its words, and a hint."""
Check = Callable[[Warp, Sequence[Value], Value], Iterator[Bad]]
"""Finds the fault of an operation's result, from its operands."""


def is_floating(dtype: NumPyType) -> bool:
    """Whether a type of the values of a kernel is a floating-point one."""
    return dtype.kind not in "biu"


@dataclass
class Indices:
    """Which integers of a program address memory: their sums, products, and signed quotients and remainders reach an
    address or a coordinate. Operands of operations on bits and of unsigned divisions are not indices: a hash may wrap,
    and the last bits of a number are right although it has wrapped.
    """

    known: dict[SSAValue, bool] = field(default_factory=dict[SSAValue, bool])

    def __contains__(self, value: SSAValue) -> bool:
        if value not in self.known:
            self.known[value] = False  # of a value that is being looked at
            quotient = isinstance(value.owner, _QUOTIENTS)
            self.known[value] = any(self._is_index(use.operation, use.index, quotient) for use in value.uses)
        return self.known[value]

    def _is_index(self, op: Operation, operand: int, quotient: bool) -> bool:
        if isinstance(op, _PASSES_ON) or (quotient and isinstance(op, arith.AndIOp)):
            return any(result in self for result in op.results)
        if isinstance(op, scf.YieldOp | YieldOp):
            parent = op.parent_op()
            return isinstance(parent, scf.IfOp | scf.ForOp) and parent.results[operand] in self
        if op.name.startswith("tile."):
            return True
        pointer = isinstance(op, PtxOp) and bool(op.operands) and str(op.operands[0].type).startswith("!ptx.ptr")
        return pointer and operand == 1 and isinstance(op, ptx.PtrAddOp)


_QUOTIENTS = (arith.DivSIOp, arith.FloorDivSIOp, arith.CeilDivSIOp, arith.RemSIOp, arith.ShRSIOp)
_PASSES_ON = (
    arith.AddiOp, arith.SubiOp, arith.MuliOp, arith.ShLIOp, arith.ExtSIOp, arith.IndexCastOp, arith.SelectOp,
    *_QUOTIENTS,
)  # fmt: skip
_WRAPS: tuple[type[Operation], ...] = (arith.AddiOp, arith.SubiOp, arith.MuliOp, arith.ShLIOp)
_SUMS = (arith.AddfOp, arith.SubfOp, math.FmaOp, vector.FMAOp)
_FROM_INTEGER = (arith.SIToFPOp, arith.UIToFPOp)
_TO_INTEGER = (arith.FPToSIOp, arith.FPToUIOp)
_FUNCTIONS = (
    math.SqrtOp, math.RsqrtOp, math.ExpOp, math.Exp2Op, math.ExpM1Op, math.LogOp, math.Log2Op, math.Log10Op,
    math.Log1pOp, math.SinOp, math.CosOp, math.TanOp, math.TanhOp, math.ErfOp, math.PowFOp, ptx.ApproximateOp,
)  # fmt: skip
CHECKED: tuple[type[Operation], ...] = (
    *_SUMS, *_WRAPS, *_FROM_INTEGER, *_TO_INTEGER, *_FUNCTIONS,
    arith.MulfOp, arith.DivfOp, arith.TruncFOp, arith.TruncIOp, vector.ReductionOp,
)  # fmt: skip
"""The operations whose results are checked."""
_SCALES = (arith.MulfOp, arith.ExtFOp, arith.TruncFOp, vector.ExtractOp, vector.InsertOp)


def _product_sum(a: Any, b: Any, c: Any) -> Any:
    return a * b + c


_EXACTLY: dict[type[Operation], Callable[..., Any]] = {
    arith.AddfOp: np.add, arith.SubfOp: np.subtract, arith.MulfOp: np.multiply, arith.NegfOp: np.negative,
    arith.ExtFOp: np.positive, arith.TruncFOp: np.positive,
    math.FmaOp: _product_sum, vector.FMAOp: _product_sum,
}  # fmt: skip
_EXACT = MappingProxyType(_EXACTLY)
"""Sums and products as functions without rounding, as far as a wider type goes."""
_DEPTH = 6
"""How many operations behind each other are computed again."""
RANGE_HINT = "keep the operands in range, for example by a scale, a maximum that is subtracted or a wider type"


def checks_of(op: Operation, t: Translator, indices: Indices) -> list[Check]:
    """The values to check in an operation."""
    kind = kind_of(op.results[0].type)
    if kind is None:
        return []
    checks: list[Check] = []
    if kind.is_float:
        checks.append(_finite(kind))
    if isinstance(op, _SUMS) and any(map(_is_rounded, op.operands)) and not _is_exponent(op.results[0]):
        checks.append(_cancels(kind))
        checks.append(_vanishes(op, t))
    if isinstance(op, _WRAPS) and kind.bits > 8 and op.results[0] in indices and not _is_unsigned(op.results[0]):
        checks.append(_wraps(op, kind))
    before = kind_of(op.operands[0].type)
    if before is not None and isinstance(op, arith.TruncIOp) and kind.bits > 1 and not _is_split(op.input):
        checks.append(_drops(kind))
    if before is not None and isinstance(op, _FROM_INTEGER) and before.bits > 1:
        checks.append(_rounds(before, isinstance(op, arith.UIToFPOp)))
    if isinstance(op, _TO_INTEGER):
        checks.append(_clamps(kind, isinstance(op, arith.FPToUIOp)))
    if isinstance(op, arith.TruncFOp) and kind.bits == 8:  # wider types have infinity
        checks.append(_saturates(kind))
    return checks


def _wide(value: Value) -> NDArray[np.float64]:
    """Numbers in double precision; the lanes of a vector come first."""
    return np.asarray(value).astype(np.float64)


def _by_lane(condition: object) -> NDArray[np.bool_]:
    """Where a condition holds in any element of a lane."""
    held = np.asarray(condition)
    return np.asarray(held.any(axis=1)) if held.ndim > 1 else held


def _finite(kind: ValueKind) -> Check:
    def check(warp: Warp, given: Sequence[Value], value: Value) -> Iterator[Bad]:
        made = _wide(value)
        if np.isfinite(made).all():
            return
        floats = [_wide(operand) for operand in given]
        no_nan, all_finite = np.array(True), np.array(True)
        for operand in floats:
            no_nan = no_nan & ~_by_lane(np.isnan(operand))
            all_finite = all_finite & ~_by_lane(~np.isfinite(operand))
        yield _by_lane(np.isnan(made)) & no_nan, Code.SIM_NAN, "produces NaN from operands that are not NaN", RANGE_HINT
        yield (
            _by_lane(np.isinf(made)) & all_finite,
            Code.SIM_INFINITY,
            "produces infinity from finite operands",
            RANGE_HINT,
        )

    return check


def _cancels(kind: ValueKind) -> Check:
    digits = 1 - int(np.log2(float(_limits(kind).eps)))
    bound = -(-digits * LOST[0] // LOST[1])
    hint = "subtract before the numbers are rounded, or in a wider type"

    def check(warp: Warp, given: Sequence[Value], value: Value) -> Iterator[Bad]:
        parts = [_wide(operand) for operand in given]
        if len(parts) == 3:
            parts = [parts[0] * parts[1], parts[2]]
        result = np.abs(_wide(value))
        largest = np.maximum(np.abs(parts[0]), np.abs(parts[1]))
        wrong = (result != 0) & np.isfinite(largest) & (result <= np.ldexp(largest, -bound))
        text = f"cancels at least {bound} of the {digits} digits that the operands have, which were rounded"
        yield _by_lane(wrong), Code.SIM_CANCELLATION, text, hint

    return check


def _vanishes(op: Operation, t: Translator) -> Check:
    """Finds differences that are 0 only since their operands were rounded: they are computed again without rounding,
    from the numbers that are in registers.
    """
    hint = "subtract before the numbers are rounded, or in a wider type"
    exact = _recomputed(op.results[0], op, t)

    def check(warp: Warp, given: Sequence[Value], value: Value) -> Iterator[Bad]:
        if not (zero := np.asarray(value) == 0).any():
            return
        with np.errstate(all="ignore"):
            whole = exact(warp)
        wrong = zero & np.isfinite(whole) & (whole != 0)
        yield _by_lane(wrong), Code.SIM_CANCELLATION, "cancels all digits of operands that were rounded", hint

    return check


def _recomputed(value: SSAValue, around: Operation, t: Translator, depth: int = _DEPTH) -> Callable[[Warp], Any]:
    """A function of a warp that computes a value from others in its registers, in a wider type. Operations of other
    blocks than that of `around` are not computed again: their operands may have changed.
    """
    op = value.owner
    if isinstance(op, Operation) and depth and op.parent_block() is around.parent_block() and type(op) in _EXACT:
        parts = [_recomputed(operand, around, t, depth - 1) for operand in op.operands]
        function = _EXACT[type(op)]
        return lambda warp: function(*[part(warp) for part in parts])
    slot = t.slot(value)
    return lambda warp: np.asarray(warp.registers[slot]).astype(np.longdouble)


def _limits(kind: ValueKind) -> Any:
    """The limits of a floating-point type."""
    return cast(Any, ml_dtypes).finfo(kind.dtype)


def _is_exponent(value: SSAValue) -> bool:
    """Whether a number is only used as an exponent: a small error of it changes the power little."""
    return bool(list(value.uses)) and all(
        isinstance(use.operation, math.ExpOp | math.Exp2Op | ptx.Ex2Op)
        or (isinstance(use.operation, _SCALES) and all(_is_exponent(result) for result in use.operation.results))
        for use in value.uses
    )


def _is_rounded(value: SSAValue) -> bool:
    """Whether an operation computes a value, which was not loaded, chosen or converted from an integer."""
    op = value.owner
    if isinstance(op, arith.ExtFOp | arith.NegfOp | vector.ExtractOp):
        return _is_rounded(op.operands[0])
    return isinstance(op, (*_SUMS, *_FUNCTIONS, arith.MulfOp, arith.DivfOp, arith.TruncFOp, vector.ReductionOp))


def _is_unsigned(value: SSAValue) -> bool:
    """Whether an integer is only read without a sign."""
    return all(isinstance(use.operation, arith.ExtUIOp) for use in value.uses)


def _is_split(value: SSAValue) -> bool:
    """Whether an integer is split into words, so that none of its bits is lost."""
    return any(isinstance(use.operation, arith.ShRUIOp | arith.ShRSIOp) for use in value.uses)


def _wraps(op: Operation, kind: ValueKind) -> Check:
    hint = "compute indices in 64 bits, or keep the tensor smaller"
    functions = {
        arith.AddiOp: np.add, arith.SubiOp: np.subtract, arith.MuliOp: np.multiply, arith.ShLIOp: np.left_shift,
    }  # fmt: skip
    function = next(made for base, made in functions.items() if isinstance(op, base))
    limit = 2.0 ** (kind.bits - 1)

    def check(warp: Warp, given: Sequence[Value], value: Value) -> Iterator[Bad]:
        a, b = [np.asarray(operand, np.int64) for operand in given]
        if kind.bits < 64:
            wrong = function(a, b) != np.asarray(value, np.int64)
        else:  # far from the limit in double precision
            exact = function(a.astype(np.float64), b.astype(np.float64)) if function is not np.left_shift else (
                np.ldexp(a.astype(np.float64), b)
            )  # fmt: skip
            wrong = np.abs(exact) > limit * (1 + 2.0**-40)
        yield _by_lane(wrong), Code.SIM_INDEX, f"wraps an index at {kind.bits} bits", hint

    return check


def _drops(kind: ValueKind) -> Check:
    hint = "keep the wider type, or split the number into words"
    low, high = -(1 << (kind.bits - 1)), (1 << kind.bits) - 1

    def check(warp: Warp, given: Sequence[Value], value: Value) -> Iterator[Bad]:
        number = np.asarray(given[0], np.int64)
        yield _by_lane((number < low) | (number > high)), Code.SIM_LOSSY, f"does not fit in {kind.bits} bits", hint

    return check


def _is_same(number: Any, value: Any) -> bool:
    """Whether a float is an integer, or none that is finite."""
    return not np.isfinite(value) or int(number) == int(value)


def _rounds(before: ValueKind, unsigned: bool) -> Check:
    hint = "convert to a type with more digits"

    def check(warp: Warp, given: Sequence[Value], value: Value) -> Iterator[Bad]:
        number = np.asarray(as_unsigned(given[0], before) if unsigned else given[0])
        back = _wide(value)
        same = np.vectorize(_is_same, otypes=[np.bool_])(number, back)
        yield _by_lane(~same), Code.SIM_LOSSY, "has more digits than the type holds", hint

    return check


def _clamps(kind: ValueKind, unsigned: bool) -> Check:
    hint = "check the range first, or convert to a wider type"

    def check(warp: Warp, given: Sequence[Value], value: Value) -> Iterator[Bad]:
        whole = np.trunc(_wide(given[0]))
        result = as_unsigned(value, kind) if unsigned else value
        wrong = ~np.isfinite(whole) | (whole != np.asarray(result).astype(np.float64))
        yield _by_lane(wrong), Code.SIM_LOSSY, f"is beyond the range of {kind.bits} bits", hint

    return check


def _saturates(kind: ValueKind) -> Check:
    limit = float(_limits(kind).max)
    hint = f"scale the numbers to at most {limit:g}"

    def check(warp: Warp, given: Sequence[Value], value: Value) -> Iterator[Bad]:
        number = np.abs(_wide(given[0]))
        wrong = np.isfinite(number) & (number > limit * (1 + float(_limits(kind).eps) / 2))
        yield _by_lane(wrong), Code.SIM_LOSSY, "is beyond the range of the type", hint

    return check
