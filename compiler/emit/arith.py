# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`arith`: integer and floating-point arithmetic, comparison, selection. `math`: functions that are exact or correctly
rounded; `expand-math` has replaced the others.
"""

from collections.abc import Sequence
from typing import cast

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import IntegerAttr
from xdsl.dialects.utils.bit_enum_attribute import BitEnumAttribute
from xdsl.ir import Operation
from xdsl.utils.str_enum import StrEnum

from ...base.errors import Code
from ...passes.errors import LoweringError
from .inline_division import compute, is_inlined
from .types import constant, overload
from .writer import FunctionWriter, Rule, rule

_APPROXIMATE = frozenset({"afn", "arcp", "fast"})
"""The flags of a quotient that need not be the nearest float."""
_UNIT_FLAGS = {"isExact": "exact", "isDisjoint": "disjoint"}
_INSTRUCTION: dict[type[Operation], str] = {
    arith.AddiOp: "add",
    arith.SubiOp: "sub",
    arith.MuliOp: "mul",
    arith.ShLIOp: "shl",
    arith.DivUIOp: "udiv",
    arith.DivSIOp: "sdiv",
    arith.RemUIOp: "urem",
    arith.RemSIOp: "srem",
    arith.ShRUIOp: "lshr",
    arith.ShRSIOp: "ashr",
    arith.AndIOp: "and",
    arith.OrIOp: "or",
    arith.XOrIOp: "xor",
    arith.AddfOp: "fadd",
    arith.SubfOp: "fsub",
    arith.MulfOp: "fmul",
    arith.DivfOp: "fdiv",
    arith.NegfOp: "fneg",
}
_INTRINSIC: dict[type[Operation], str] = {
    arith.MinSIOp: "smin",
    arith.MaxSIOp: "smax",
    arith.MinUIOp: "umin",
    arith.MaxUIOp: "umax",
    arith.MaximumfOp: "maximum",
    arith.MinimumfOp: "minimum",
    arith.MaxnumfOp: "maximumnum",
    arith.MinnumfOp: "minimumnum",
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


def flags(op: Operation) -> str:
    """The flags of an operation as LLVM spells them, each after a blank: of overflow, of fast math, and others."""
    names: list[str] = []
    for key, value in op.properties.items():
        if key == "overflowFlags" and isinstance(value, IntegerAttr):  # in the dialect `llvm`, the bits of the flags
            from xdsl.dialects.llvm import OverflowAttr

            value = OverflowAttr.from_int(cast("IntegerAttr", value).value.data)
        if isinstance(value, BitEnumAttribute):
            names += sorted(cast("BitEnumAttribute[StrEnum]", value).data)  # a set has no order
        elif key in _UNIT_FLAGS:
            names.append(_UNIT_FLAGS[key])
    return "".join(f" {name}" for name in names)


def instruction(name: str) -> Rule:
    """The rule of an operation that is one instruction on operands of its result's type."""

    def write(w: FunctionWriter, op: Operation) -> None:
        (result,) = op.results
        operands, type, given = [w.ref(operand) for operand in op.operands], w.type(result), flags(op)
        if w.divides_inline and is_inlined(name, type) and not _APPROXIMATE.intersection(given.split()):
            w.bind(result, compute(w, name, type, operands))
        else:
            w.define(result, f"{name}{given} {type} {', '.join(operands)}")

    return write


def intrinsic(name: str) -> Rule:
    """The rule of an operation that is one LLVM intrinsic, overloaded on the type of its result."""

    def write(w: FunctionWriter, op: Operation) -> None:
        type = w.type(op.results[0])
        if w.divides_inline and is_inlined(name, type):
            w.bind(op.results[0], compute(w, name, type, [w.ref(operand) for operand in op.operands]))
        else:
            w.call(op, f"@llvm.{name}.{overload(type)}", flags(op))

    return write


def _with_flag(name: str) -> Rule:
    """An intrinsic on integers whose second operand says whether one input makes the result undefined: it does not."""

    def write(w: FunctionWriter, op: Operation) -> None:
        type = w.type(op.results[0])
        w.define(op.results[0], f"call {type} @llvm.{name}.{overload(type)}({type} {w.ref(op.operands[0])}, i1 false)")

    return write


def _constant(w: FunctionWriter, op: arith.ConstantOp) -> None:
    w.type(op.result)  # refuses a type that has no registers
    w.bind(op.result, constant(op.value, op))


def compare(name: str, predicates: Sequence[str]) -> Rule:
    """The rule of a comparison, whose attribute `predicate` is a number: the dialects number them alike."""

    def write(w: FunctionWriter, op: Operation) -> None:
        index = cast("IntegerAttr", op.properties["predicate"]).value.data
        if not 0 <= index < len(predicates):
            raise LoweringError(Code.EMIT_UNSUPPORTED, f"'{op.name}': unknown predicate {index}", op)
        left, right = op.operands
        w.define(op.results[0], f"{name}{flags(op)} {predicates[index]} {w.typed(left)}, {w.ref(right)}")

    return write


def select(w: FunctionWriter, op: Operation) -> None:
    """The rule of a choice between two values."""
    w.define(op.results[0], f"select{flags(op)} {', '.join(w.typed(operand) for operand in op.operands)}")


def _condition(type: str) -> str:
    """The type of a comparison of two values of an LLVM type: i1, or as many of them as a vector has elements."""
    return f"{type[: type.index('x')]}x i1>" if type.startswith("<") else "i1"


def _make_rounded_div(up: bool) -> Rule:
    """Signed division rounded up or down: the quotient towards zero, moved by one where that is not it.

    The exact quotient is positive where the remainder has the divisor's sign, and negative where it has
    not; an inexact one lies above the quotient towards zero in the first case, below it in the second.
    """
    step, sign = ("add", "sge") if up else ("sub", "slt")

    def write(w: FunctionWriter, op: Operation) -> None:
        type = w.type(op.results[0])
        a, b = (w.ref(operand) for operand in op.operands)
        quotient = compute(w, "sdiv", type, (a, b))
        rest = compute(w, "srem", type, (a, b))
        signs = w.temp(f"xor {type} {rest}, {b}")
        beyond = w.temp(f"icmp {sign} {type} {signs}, zeroinitializer")
        inexact = w.temp(f"icmp ne {type} {rest}, zeroinitializer")
        moves = w.temp(f"and {_condition(type)} {beyond}, {inexact}")
        w.define(op.results[0], f"{step} {type} {quotient}, {_extend_condition(w, moves, type)}")

    return write


def _ceil_div_unsigned(w: FunctionWriter, op: arith.CeilDivUIOp) -> None:
    type, a, b = w.type(op.result), w.ref(op.lhs), w.ref(op.rhs)
    quotient = compute(w, "udiv", type, (a, b))
    rest = compute(w, "urem", type, (a, b))
    inexact = w.temp(f"icmp ne {type} {rest}, zeroinitializer")
    w.define(op.result, f"add {type} {quotient}, {_extend_condition(w, inexact, type)}")


def _extend_condition(w: FunctionWriter, condition: str, type: str) -> str:
    """A condition as the number 0 or 1 of an integer type."""
    narrow = _condition(type)
    return condition if narrow == type else w.temp(f"zext {narrow} {condition} to {type}")


ARITH: tuple[tuple[type[Operation], Rule], ...] = (
    *((kind, instruction(name)) for kind, name in _INSTRUCTION.items()),
    *((kind, intrinsic(name)) for kind, name in _INTRINSIC.items()),
    rule(arith.ConstantOp, _constant),
    (arith.CmpiOp, compare("icmp", arith.CMPI_COMPARISON_OPERATIONS)),
    (arith.CmpfOp, compare("fcmp", arith.CMPF_COMPARISON_OPERATIONS)),
    (arith.SelectOp, select),
    (arith.FloorDivSIOp, _make_rounded_div(up=False)),
    (arith.CeilDivSIOp, _make_rounded_div(up=True)),
    rule(arith.CeilDivUIOp, _ceil_div_unsigned),
    (math.AbsIOp, _with_flag("abs")),
    (math.CountLeadingZerosOp, _with_flag("ctlz")),
    (math.CountTrailingZerosOp, _with_flag("cttz")),
)
