# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`arith`: integer and floating-point arithmetic, comparison, selection."""

from collections.abc import Callable

from xdsl.dialects import arith
from xdsl.ir import Operation

from ...base.errors import Code
from ...passes.errors import LoweringError
from .types import constant, overload
from .writer import FunctionWriter, Rule, rule

_INTEGER: dict[type[Operation], str] = {
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
}
_FLOAT: dict[type[Operation], str] = {
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
}


def fastmath(op: Operation) -> str:
    """The fast-math flags of an operation as LLVM spells them, with a leading blank; empty where there are none."""
    return _flags(op, "fastmath")


def _flags(op: Operation, name: str) -> str:
    flags = op.properties.get(name)
    if not isinstance(flags, arith.FastMathFlagsAttr | arith.IntegerOverflowAttr):
        return ""
    return "".join(f" {flag}" for flag in sorted(flag.value for flag in flags.data))  # a set has no order


def _operands(w: FunctionWriter, op: Operation) -> str:
    return f"{w.type(op.results[0])} {', '.join(w.ref(operand) for operand in op.operands)}"


def _integer(name: str) -> Rule:
    return lambda w, op: w.define(op.results[0], f"{name}{_flags(op, 'overflowFlags')} {_operands(w, op)}")


def _float(name: str) -> Rule:
    return lambda w, op: w.define(op.results[0], f"{name}{fastmath(op)} {_operands(w, op)}")


def intrinsic(name: str) -> Rule:
    """The rule of an operation that is one overloaded LLVM intrinsic on operands of its result's type."""

    def write(w: FunctionWriter, op: Operation) -> None:
        type = w.type(op.results[0])
        args = ", ".join(f"{type} {w.ref(operand)}" for operand in op.operands)
        w.define(op.results[0], f"call{fastmath(op)} {type} @llvm.{name}.{overload(type)}({args})")

    return write


def _constant(w: FunctionWriter, op: arith.ConstantOp) -> None:
    w.type(op.result)  # refuses a type that has no registers
    w.bind(op.result, constant(op.value, op))


def _compare(name: str, predicates: list[str]) -> Callable[[FunctionWriter, Operation], None]:
    def write(w: FunctionWriter, op: Operation) -> None:
        assert isinstance(op, arith.CmpiOp | arith.CmpfOp)
        index = op.predicate.value.data
        if not 0 <= index < len(predicates):
            raise LoweringError(Code.EMIT_UNSUPPORTED, f"'{op.name}' has no predicate {index}", op)
        left, right = w.typed(op.lhs), w.ref(op.rhs)
        w.define(op.result, f"{name}{fastmath(op)} {predicates[index]} {left}, {right}")

    return write


def _select(w: FunctionWriter, op: arith.SelectOp) -> None:
    w.define(op.result, f"select i1 {w.ref(op.cond)}, {w.typed(op.lhs)}, {w.typed(op.rhs)}")


def _condition(type: str) -> str:
    """The type of a comparison of two values of an LLVM type: i1, or as many of them as a vector has elements."""
    return f"{type[: type.index('x')]}x i1>" if type.startswith("<") else "i1"


def _rounded_div(up: bool) -> Rule:
    """Signed division rounded up or down: the quotient towards zero, moved by one where that is not it.

    The exact quotient is positive where the remainder has the divisor's sign, and negative where it has
    not; an inexact one lies above the quotient towards zero in the first case, below it in the second.
    """
    step, sign = ("add", "sge") if up else ("sub", "slt")

    def write(w: FunctionWriter, op: Operation) -> None:
        type = w.type(op.results[0])
        a, b = (w.ref(operand) for operand in op.operands)
        quotient = w.temp(f"sdiv {type} {a}, {b}")
        rest = w.temp(f"srem {type} {a}, {b}")
        signs = w.temp(f"xor {type} {rest}, {b}")
        beyond = w.temp(f"icmp {sign} {type} {signs}, zeroinitializer")
        inexact = w.temp(f"icmp ne {type} {rest}, zeroinitializer")
        moves = w.temp(f"and {_condition(type)} {beyond}, {inexact}")
        w.define(op.results[0], f"{step} {type} {quotient}, {_extended(w, moves, type)}")

    return write


def _ceil_div_unsigned(w: FunctionWriter, op: arith.CeilDivUIOp) -> None:
    type, a, b = w.type(op.result), w.ref(op.lhs), w.ref(op.rhs)
    quotient = w.temp(f"udiv {type} {a}, {b}")
    rest = w.temp(f"urem {type} {a}, {b}")
    inexact = w.temp(f"icmp ne {type} {rest}, zeroinitializer")
    w.define(op.result, f"add {type} {quotient}, {_extended(w, inexact, type)}")


def _extended(w: FunctionWriter, condition: str, type: str) -> str:
    """A condition as the number 0 or 1 of an integer type."""
    narrow = _condition(type)
    return condition if narrow == type else w.temp(f"zext {narrow} {condition} to {type}")


ARITH: tuple[tuple[type[Operation], Rule], ...] = (
    *((kind, _integer(name)) for kind, name in _INTEGER.items()),
    *((kind, _float(name)) for kind, name in _FLOAT.items()),
    *((kind, intrinsic(name)) for kind, name in _INTRINSIC.items()),
    rule(arith.ConstantOp, _constant),
    rule(arith.CmpiOp, _compare("icmp", arith.CMPI_COMPARISON_OPERATIONS)),
    rule(arith.CmpfOp, _compare("fcmp", arith.CMPF_COMPARISON_OPERATIONS)),
    rule(arith.SelectOp, _select),
    (arith.FloorDivSIOp, _rounded_div(up=False)),
    (arith.CeilDivSIOp, _rounded_div(up=True)),
    rule(arith.CeilDivUIOp, _ceil_div_unsigned),
)
