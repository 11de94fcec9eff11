# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks the results of a run: conditions over its arguments, such as `B == A.T and C ~= A @ B`."""

import ast
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ...base.errors import Code
from ...base.limits import DEFAULT_LIMITS
from ...dialects.run.grammar import OPERATORS, Expression, ExpressionError, Near, parse_expression
from ..engine import NumPyArray
from ..exact.number import nearest
from .evaluate import Evaluator, Value
from .functions import FUNCTIONS
from .limits import Memory, is_floating, tolerance

_SLAB = 2**22  # elements compared at a time, so that a comparison in float64 needs little memory


@dataclass(frozen=True)
class Mismatch:
    """A failed comparison: its first wrong element in row-major order, and the error of the whole."""

    index: tuple[int, ...]
    got: str
    expected: str
    wrong: int
    max_abs_error: float
    max_rel_error: float


@dataclass(frozen=True)
class CheckResult:
    """One comparison: its text, how many elements it covered, its tolerances, and the mismatch if there is one."""

    text: str
    left: str
    elements: int
    rtol: float
    atol: float
    mismatch: Mismatch | None
    is_exact: bool = False

    @property
    def passed(self) -> bool:
        """Whether every element compares as it must."""
        return self.mismatch is None

    def __str__(self) -> str:
        """One line for a report, as in `B == A: 1024 elements, exact: ok`."""
        how = "" if "~=" not in self.text else f" within rtol {self.rtol:g}, atol {self.atol:g}"
        how = " in exact arithmetic" if self.is_exact else how
        head = f"{self.text}: {self.elements} element{'s' * (self.elements != 1)}{how}"
        bad = self.mismatch
        if bad is None:
            return f"{head}: ok"
        place = f"{self.left}[{', '.join(map(str, bad.index))}]" if bad.index else self.left
        return (
            f"{head}: FAILED, {bad.wrong} wrong; first {place} is {bad.got}, expected {bad.expected}; "
            f"largest error {bad.max_abs_error:g} absolute, {bad.max_rel_error:g} relative"
        )


def check_results(
    text: str,
    values: Mapping[str, Value],
    *,
    rtol: float | None = None,
    atol: float | None = None,
    max_bytes: int = DEFAULT_LIMITS.bytes,
) -> tuple[CheckResult, ...]:
    """Judges every comparison that `text` joins by `and`, over the logical arrays and scalars in `values`.

    `==` holds where the two sides are the same number (bit for bit if they have one type) or both NaN; `~=` where they
    differ by at most atol + rtol * |expected|, with tolerances of the element types (`dtypes.TOLERANCES`) unless given;
    `!=`, `<`, `<=`, `>`, `>=` where NumPy says so. Both sides have one shape, or one is a number.
    `max_bytes` bounds the memory of the evaluation. Raises ExpressionError, with the offsets of the fault in `text`.
    """
    node = parse_expression(text)
    evaluator = Evaluator(values, FUNCTIONS, Memory(max_bytes))
    parts = node.values if isinstance(node, ast.BoolOp) else [node]
    return tuple([_compare(text, part, evaluator, rtol, atol) for part in parts])


def _compare(text: str, node: Expression, evaluator: Evaluator, rtol: float | None, atol: float | None) -> CheckResult:
    if not isinstance(node, ast.Compare):
        hint = "write left == right, or left ~= right, joined by 'and'"
        raise ExpressionError.at(node, Code.CHECK_VALUE, "a check states comparisons", hint)
    left, right = evaluator.array(node.left), evaluator.array(node.comparators[0])
    if left.shape != right.shape and () not in (left.shape, right.shape):
        raise ExpressionError.at(node, Code.CHECK_VALUE, f"shapes {left.shape} and {right.shape} differ")
    by_type = tolerance(left.dtype, right.dtype)
    rtol, atol = by_type[0] if rtol is None else rtol, by_type[1] if atol is None else atol
    shape = max(left.shape, right.shape, key=len)
    left, right = np.broadcast_to(left, shape), np.broadcast_to(right, shape)
    holds = _holds_slabwise(node.ops[0], left, right, rtol, atol)
    return CheckResult(
        text[node.col_offset : node.end_col_offset],
        text[node.left.col_offset : node.left.end_col_offset],
        holds.size,
        rtol,
        atol,
        None if holds.all() else _find_mismatch(left, right, ~holds),
        object in (left.dtype, right.dtype),
    )


def _holds_slabwise(op: ast.cmpop, left: NumPyArray, right: NumPyArray, rtol: float, atol: float) -> NumPyArray:
    """The elements for which the comparison holds, slab by slab of the first mode."""
    if left.ndim == 0 or left.size <= _SLAB:
        return np.asanyarray(_holds(op, left, right, rtol, atol), dtype=np.bool_)
    rows = max(1, _SLAB * len(left) // left.size)
    starts = range(0, len(left), rows)
    return np.concatenate([_holds(op, left[at : at + rows], right[at : at + rows], rtol, atol) for at in starts])


def _holds(op: ast.cmpop, left: NumPyArray, right: NumPyArray, rtol: float, atol: float) -> NumPyArray:
    both_nan = _isnan(left) & _isnan(right)
    with np.errstate(all="ignore"):
        match op:
            case ast.Eq():
                if left.dtype == right.dtype != object and is_floating(left.dtype):
                    bits = f"u{left.dtype.itemsize}"
                    return both_nan | (left.view(bits) == right.view(bits))
                return both_nan | (left == right)
            case Near() if object in (left.dtype, right.dtype):
                return left == right
            case Near():
                actual, expected = left.astype(np.float64), right.astype(np.float64)
                near = np.abs(actual - expected) <= atol + rtol * np.abs(expected)
                return both_nan | (actual == expected) | (near & np.isfinite(expected))
            case _:
                return OPERATORS[type(op)][1](left, right)


def _isnan(array: NumPyArray) -> NumPyArray:
    is_float = array.dtype != object and is_floating(array.dtype)  # exact numbers are never NaN
    return np.isnan(array) if is_float else np.zeros(array.shape, np.bool_)


def _doubles(array: NumPyArray) -> NumPyArray:
    return nearest(array) if array.dtype == object else array.astype(np.float64)


def _find_mismatch(left: NumPyArray, right: NumPyArray, wrong: NumPyArray) -> Mismatch:
    first = np.unravel_index(int(np.argmax(wrong)), wrong.shape)
    actual, expected = _doubles(left[wrong]), _doubles(right[wrong])
    with np.errstate(all="ignore"):
        error = np.abs(actual - expected)
        relative = error / np.abs(expected)
    return Mismatch(
        tuple(int(i) for i in first),
        str(left[first]),
        str(right[first]),
        int(wrong.sum()),
        float(np.max(error)),
        float(np.max(relative)),
    )
