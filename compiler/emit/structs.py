# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""LLVM structures, which hold lowered `cute` values (LLVM Language Reference, Aggregate Operations)."""

from xdsl.dialects import llvm, ub
from xdsl.ir import Operation

from .writer import FunctionWriter, Rule, rule


def _poison(w: FunctionWriter, op: ub.PoisonOp) -> None:
    w.type(op.result)  # refuses a type that has no registers
    w.bind(op.result, "poison")


def _indices(op: llvm.InsertValueOp | llvm.ExtractValueOp) -> str:
    return ", ".join(str(int(index)) for index in op.position.get_values())


def _insert(w: FunctionWriter, op: llvm.InsertValueOp) -> None:
    w.define(op.res, f"insertvalue {w.typed(op.container)}, {w.typed(op.value)}, {_indices(op)}")


def _extract(w: FunctionWriter, op: llvm.ExtractValueOp) -> None:
    w.define(op.res, f"extractvalue {w.typed(op.container)}, {_indices(op)}")


STRUCTS: tuple[tuple[type[Operation], Rule], ...] = (
    rule(ub.PoisonOp, _poison),
    rule(llvm.InsertValueOp, _insert),
    rule(llvm.ExtractValueOp, _extract),
)
