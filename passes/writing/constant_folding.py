# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Integer arithmetic of constants, folded."""

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from ...dialects.arith.semantics import INTEGER_OPERATIONS, compare, constant_of, int_width
from .emitter import Emitter


def fold_constants(module: ModuleOp) -> bool:
    """Replaces integer operations whose operands are constants by constants, and selections among constants.

    A value less itself is 0. Division by zero and other operations without a result stay. Returns whether anything
    was replaced.
    """
    changed = False
    for op in list(module.walk()):
        result = fold(op)
        if result is None:
            continue
        changed = True
        emitter = Emitter(op)
        emitter.replace([result if isinstance(result, SSAValue) else emitter.constant_like(result, op.results[0])])
    return changed


def fold(op: Operation) -> int | SSAValue | None:
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
            return None if a is None or b is None or width is None else INTEGER_OPERATIONS[type(op)].result(a, b, width)
        case arith.ExtSIOp(input=inner) | arith.TruncIOp(input=inner) | arith.IndexCastOp(input=inner):
            return constant_of(inner)
        case math.AbsIOp(operand=inner):
            value = constant_of(inner)
            return None if value is None else abs(value)
        case arith.ExtUIOp(input=inner):
            value, width = constant_of(inner), int_width(inner.type)
            return None if value is None or width is None else value & ((1 << width) - 1)
        case Operation(name="llvm.extractvalue"):
            return _fold_extraction(op)
        case _:
            return None


def _fold_extraction(op: Operation) -> SSAValue | None:
    """The value that was inserted into a struct at the position of an extraction, if that is known."""
    from xdsl.dialects import llvm  # takes long to import, and few kernels have structs

    assert isinstance(op, llvm.ExtractValueOp)
    container, position = op.container, tuple(op.position.get_values())
    while isinstance(insertion := container.owner, llvm.InsertValueOp):
        where = tuple(insertion.position.get_values())
        if where == position:
            return insertion.value
        if where == position[: len(where)]:
            container, position = insertion.value, position[len(where) :]  # a part of the inserted value
        elif position == where[: len(position)]:
            return None  # only a part of it was inserted
        else:
            container = insertion.container
    return None
