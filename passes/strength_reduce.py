# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`strength-reduce`: the last pass to stage `instr`."""

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerType, ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from ..dialects.arith.semantics import CHECKED, constant_of
from ..dialects.ptx import PtrAddOp
from .writing.emitter import Emitter


@dataclass(frozen=True)
class StrengthReducePass(ModulePass):
    """Replaces multiplications, divisions and remainders by powers of two by shifts, masks and adds.

    Also folds constants, removes additions and multiplications without effect, and erases unused operations.

    Before: `%1 = arith.divui %0, %c8 : i32`. After: `%1 = arith.shrui %0, %c3 : i32`.
    """

    name = "strength-reduce"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in list(op.walk()):
            if isinstance(inner, arith.SignlessIntegerBinaryOperation):
                if isinstance(inner.result.type, IntegerType):
                    _reduce(inner, inner.result.type)
            elif isinstance(inner, PtrAddOp) and inner.within is None and constant_of(inner.offset) == 0:
                Emitter(inner).replace([inner.ptr])
        for inner in reversed(list(op.walk())):
            unused = isinstance(
                inner, arith.ConstantOp | arith.SignlessIntegerBinaryOperation | arith.IndexCastOp | PtrAddOp
            )
            if unused and not inner.results[0].uses:
                Rewriter.erase_op(inner)


def _reduce(op: arith.SignlessIntegerBinaryOperation, type: IntegerType) -> None:
    left, right = constant_of(op.lhs), constant_of(op.rhs)
    emitter = Emitter(op)
    result = None
    if left is not None and right is not None:
        from .writing.constant_folding import fold

        value = fold(op)
        result = emitter.constant_like(value, op.result) if isinstance(value, int) else None
    elif right is not None:
        result = _reduce_by_constant(emitter, op, op.lhs, right, type)
    elif left is not None and isinstance(op, arith.AddiOp | arith.MuliOp):
        result = _reduce_by_constant(emitter, op, op.rhs, left, type)
    if result is not None:
        if CHECKED in op.attributes and isinstance(owner := result.owner, arith.ShLIOp):
            owner.attributes[CHECKED] = op.attributes[CHECKED]
        emitter.replace([result])


def _reduce_by_constant(
    emitter: Emitter, op: Operation, value: SSAValue, constant: int, type: IntegerType
) -> SSAValue | None:
    """A cheaper form of `value op constant`; None if it has none."""
    power = constant.bit_length() - 1 if constant > 0 and constant & (constant - 1) == 0 else None
    match op:
        case arith.AddiOp() | arith.SubiOp() | arith.OrIOp() | arith.XOrIOp() | arith.ShLIOp() | arith.ShRUIOp() if (
            constant == 0
        ):
            return value
        case arith.MuliOp() | arith.DivUIOp() if constant == 1:
            return value
        case arith.MuliOp() | arith.AndIOp() if constant == 0:
            return emitter.constant(0, type)
        case arith.RemUIOp() if constant == 1:
            return emitter.constant(0, type)
        case arith.MuliOp() if power is not None:
            return emitter.value(arith.ShLIOp(value, emitter.constant(power, type)))
        case arith.DivUIOp() if power is not None:
            return emitter.value(arith.ShRUIOp(value, emitter.constant(power, type)))
        case arith.RemUIOp() if power is not None:
            return emitter.value(arith.AndIOp(value, emitter.constant(constant - 1, type)))
        case _:
            return None
