# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Integer arithmetic of constants, folded."""

from collections.abc import Callable

from xdsl.dialects import arith, llvm, math
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from .constants import constant_of
from .emitter import Emitter, int_width


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
            operands = _signed_and_unsigned(left, right)
            return None if operands is None else _binary(op, *operands)
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


def _signed_and_unsigned(left: SSAValue, right: SSAValue) -> tuple[int, int, int, int] | None:
    """Both constants as signed, then as unsigned integers."""
    a, b, width = constant_of(left), constant_of(right), int_width(left.type)
    if a is None or b is None or width is None:
        return None
    mask = (1 << width) - 1
    return a, b, a & mask, b & mask


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


def _binary(op: Operation, a: int, b: int, c: int, d: int) -> int | None:
    """The operation on signed `a` and `b`, which are `c` and `d` unsigned."""
    match op:
        case arith.AddiOp():
            return a + b
        case arith.SubiOp():
            return a - b
        case arith.MuliOp():
            return a * b
        case arith.AndIOp():
            return a & b
        case arith.OrIOp():
            return a | b
        case arith.XOrIOp():
            return a ^ b
        case arith.DivSIOp() if b:
            return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
        case arith.RemSIOp() if b:
            return abs(a) % abs(b) * (-1 if a < 0 else 1)
        case arith.FloorDivSIOp() if b:
            return a // b
        case arith.CeilDivSIOp() if b:
            return -(-a // b)
        case arith.DivUIOp() if d:
            return c // d
        case arith.CeilDivUIOp() if d:
            return -(-c // d)
        case arith.RemUIOp() if d:
            return c % d
        case arith.MinSIOp():
            return min(a, b)
        case arith.MaxSIOp():
            return max(a, b)
        case arith.MinUIOp():
            return min(c, d)
        case arith.MaxUIOp():
            return max(c, d)
        case arith.ShLIOp() if 0 <= b < 64:
            return a << b
        case arith.ShRSIOp() if 0 <= b < 64:
            return a >> b
        case arith.ShRUIOp() if 0 <= b < 64:
            return c >> b
        case _:
            return None


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
