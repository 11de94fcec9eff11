# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`math`: functions that are exact or correctly rounded. `expand-math` has replaced the others."""

from xdsl.dialects import math
from xdsl.ir import Operation

from .arith import intrinsic
from .types import overload
from .writer import FunctionWriter, Rule

_INTRINSIC: dict[type[Operation], str] = {
    math.AbsFOp: "fabs",
    math.CeilOp: "ceil",
    math.FloorOp: "floor",
    math.RoundOp: "round",
    math.RoundEvenOp: "roundeven",
    math.TruncOp: "trunc",
    math.SqrtOp: "sqrt",
    math.CopySignOp: "copysign",
    math.FmaOp: "fma",
    math.CtPopOp: "ctpop",
}


def _with_flag(name: str) -> Rule:
    """An intrinsic on integers whose second operand says whether one input makes the result undefined: it does not."""

    def write(w: FunctionWriter, op: Operation) -> None:
        type = w.type(op.results[0])
        w.define(
            op.results[0],
            f"call {type} @llvm.{name}.{overload(type)}({type} {w.ref(op.operands[0])}, i1 false)",
        )

    return write


MATH: tuple[tuple[type[Operation], Rule], ...] = (
    *((kind, intrinsic(name)) for kind, name in _INTRINSIC.items()),
    (math.AbsIOp, _with_flag("abs")),
    (math.CountLeadingZerosOp, _with_flag("ctlz")),
    (math.CountTrailingZerosOp, _with_flag("cttz")),
)
