# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Integer arithmetic of constants, folded."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TypeAlias

from xdsl.dialects import arith, llvm, math
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from ..analysis.range_arithmetic import truncated
from .constants import constant_of, signed
from .emitter import Emitter, int_width

_Exact: TypeAlias = Callable[[int, int, int], int | None]


def fold_constants(module: ModuleOp) -> bool:
    """Replaces integer operations whose operands are constants by constants, and what selects among constants.

    A value less itself is 0. Division by zero and other operations without a result stay. Returns whether anything
    was replaced.
    """
    changed = False
    for op in list(module.walk()):
        result = folded(op)
        if result is None:
            continue
        changed = True
        emitter = Emitter(op)
        emitter.replace([result if isinstance(result, SSAValue) else emitter.constant_like(result, op.results[0])])
    return changed


def folded(op: Operation) -> int | SSAValue | None:
    """The constant (of any width), or the other value, that `op` always yields; None where that is not known."""
    match op:
        case arith.SelectOp(cond=condition, lhs=left, rhs=right):
            chosen = constant_of(condition)
            return None if chosen is None else (left if chosen else right)
        case arith.CmpiOp(lhs=left, rhs=right):
            a, b, width = constant_of(left), constant_of(right), int_width(left.type)
            return (
                None if a is None or b is None or width is None else int(compare(op.predicate.value.data, a, b, width))
            )
        case arith.SubiOp(lhs=left, rhs=right) if left is right and int_width(left.type) is not None:
            return 0
        case arith.SignlessIntegerBinaryOperation(lhs=left, rhs=right):
            a, b, width = constant_of(left), constant_of(right), int_width(left.type)
            return None if a is None or b is None or width is None else computed(op, a, b, width)
        case arith.ExtSIOp(input=inner) | arith.TruncIOp(input=inner) | arith.IndexCastOp(input=inner):
            return constant_of(inner)
        case math.AbsIOp(operand=inner):
            value = constant_of(inner)
            return None if value is None else abs(value)
        case arith.ExtUIOp(input=inner):
            value, width = constant_of(inner), int_width(inner.type)
            return None if value is None or width is None else value & ((1 << width) - 1)
        case llvm.ExtractValueOp(container=container):
            return _extracted(container, tuple(op.position.get_values()))
        case _:
            return None


def compare(predicate: int, a: int, b: int, width: int) -> bool:
    """What `arith.cmpi` says of two signed integers of so many bits."""
    mask = (1 << width) - 1
    return _COMPARISONS[predicate](a, b, a & mask, b & mask)


_COMPARISONS: tuple[Callable[[int, int, int, int], bool], ...] = (
    lambda a, b, _c, _d: a == b,
    lambda a, b, _c, _d: a != b,
    lambda a, b, _c, _d: a < b,
    lambda a, b, _c, _d: a <= b,
    lambda a, b, _c, _d: a > b,
    lambda a, b, _c, _d: a >= b,
    lambda _a, _b, c, d: c < d,
    lambda _a, _b, c, d: c <= d,
    lambda _a, _b, c, d: c > d,
    lambda _a, _b, c, d: c >= d,
)
"""By the number of the predicate: eq, ne, slt, sle, sgt, sge, ult, ule, ugt, uge."""


def computed(op: Operation, a: int, b: int, bits: int) -> int | None:
    """What a binary operation on integers of `bits` yields for two signed ones, as a signed one; None where it has no
    result, and for other operations.
    """
    function, is_unsigned = _BINARY.get(type(op), (None, False))
    if function is None:
        return None
    if is_unsigned:
        a, b = a & ((1 << bits) - 1), b & ((1 << bits) - 1)
    result = function(a, b, bits)
    return None if result is None else signed(result, bits)


def _of_any(function: Callable[[int, int], int]) -> _Exact:
    return lambda a, b, _: function(a, b)


def _division(function: Callable[[int, int], int]) -> _Exact:
    """One that has a result: it is not by 0, and the quotient fits."""
    return lambda a, b, bits: None if b == 0 or (b == -1 and a == -1 << (bits - 1)) else function(a, b)


def _shift(function: Callable[[int, int], int]) -> _Exact:
    return lambda a, b, bits: function(a, b) if 0 <= b < bits else None


_BINARY: Mapping[type[Operation], tuple[_Exact, bool]] = MappingProxyType({
    arith.AddiOp: (_of_any(lambda a, b: a + b), False),
    arith.SubiOp: (_of_any(lambda a, b: a - b), False),
    arith.MuliOp: (_of_any(lambda a, b: a * b), False),
    arith.AndIOp: (_of_any(lambda a, b: a & b), False),
    arith.OrIOp: (_of_any(lambda a, b: a | b), False),
    arith.XOrIOp: (_of_any(lambda a, b: a ^ b), False),
    arith.DivSIOp: (_division(truncated), False),
    arith.DivUIOp: (_division(lambda a, b: a // b), True),
    arith.RemSIOp: (_division(lambda a, b: a - truncated(a, b) * b), False),
    arith.RemUIOp: (_division(lambda a, b: a % b), True),
    arith.FloorDivSIOp: (_division(lambda a, b: a // b), False),
    arith.CeilDivSIOp: (_division(lambda a, b: -(-a // b)), False),
    arith.CeilDivUIOp: (_division(lambda a, b: -(-a // b)), True),
    arith.MinSIOp: (_of_any(min), False),
    arith.MaxSIOp: (_of_any(max), False),
    arith.MinUIOp: (_of_any(min), True),
    arith.MaxUIOp: (_of_any(max), True),
    arith.ShLIOp: (_shift(lambda a, b: a << b), False),
    arith.ShRSIOp: (_shift(lambda a, b: a >> b), False),
    arith.ShRUIOp: (_shift(lambda a, b: a >> b), True),
})  # fmt: skip
"""Each operation on integers of so many bits, and whether it reads them as unsigned."""


def _extracted(container: SSAValue, position: tuple[int, ...]) -> SSAValue | None:
    """The value that was inserted into a struct at a position, if that is known."""
    while isinstance(insertion := container.owner, llvm.InsertValueOp):
        where = tuple(insertion.position.get_values())
        if where == position:
            return insertion.value
        if where == position[: len(where)]:
            container, position = insertion.value, position[len(where) :]  # a part of what was inserted
        elif position == where[: len(position)]:
            return None  # only a part of it was inserted
        else:
            container = insertion.container
    return None
