# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`math`: what PTX computes by one instruction, or by one with a scaled operand or result.

exp, exp2, log, log2, sin, cos, tanh and rsqrt are PTX's approximations (PTX ISA, ex2.approx, lg2.approx,
sin.approx, cos.approx, tanh.approx, rsqrt.approx, where their errors are stated), computed in f32; f16 and
bf16 operands are extended to f32 before and rounded after. There are none for f64. The other functions are
exact or correctly rounded.
"""

from collections.abc import Callable

from xdsl.dialects import math
from xdsl.ir import Operation

from ...dialects.ptx.types import float_bits, split_vector
from ...layout.errors import Code
from ...passes.errors import LoweringError
from .arith import intrinsic
from .types import llvm_type, overload
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
_LOG2_E = "0x3FF7154760000000"  # log2(e) and ln(2), rounded to f32
_LN_2 = "0x3FE62E4300000000"


def _exp2(w: FunctionWriter, x: str) -> str:
    return w.temp(f"call float @llvm.nvvm.ex2.approx.f32(float {x})")


def _log2(w: FunctionWriter, x: str) -> str:
    return w.temp(f"call float @llvm.nvvm.lg2.approx.f(float {x})")


def _exp(w: FunctionWriter, x: str) -> str:
    return _exp2(w, w.temp(f"fmul float {x}, {_LOG2_E}"))


def _log(w: FunctionWriter, x: str) -> str:
    return w.temp(f"fmul float {_log2(w, x)}, {_LN_2}")


def _approximate(name: str) -> Callable[[FunctionWriter, str], str]:
    return lambda w, x: w.temp(f"call afn float @llvm.{name}.f32(float {x})")


def _rsqrt(w: FunctionWriter, x: str) -> str:
    return w.temp(f"call float @llvm.nvvm.rsqrt.approx.f(float {x})")


_APPROXIMATE: dict[type[Operation], Callable[[FunctionWriter, str], str]] = {
    math.ExpOp: _exp,
    math.Exp2Op: _exp2,
    math.LogOp: _log,
    math.Log2Op: _log2,
    math.SinOp: _approximate("sin"),
    math.CosOp: _approximate("cos"),
    math.TanhOp: _approximate("tanh"),
    math.RsqrtOp: _rsqrt,
}


def _through_f32(function: Callable[[FunctionWriter, str], str]) -> Rule:
    """Applies an f32 function to each element of the operand."""

    def write(w: FunctionWriter, op: Operation) -> None:
        operand, result = op.operands[0], op.results[0]
        element, count = split_vector(result.type)
        bits = float_bits(element)
        if bits is None or bits > 32:
            raise LoweringError(
                Code.EMIT_UNSUPPORTED,
                f"'{op.name}' has no instruction for {element}",
                op,
                "PTX approximates this function in f32 only",
            )
        type = llvm_type(element, op)

        def one(x: str) -> str:
            if bits == 32:
                return function(w, x)
            wide = function(w, w.temp(f"fpext {type} {x} to float"))
            return w.temp(f"fptrunc float {wide} to {type}")

        if not count:
            w.bind(result, one(w.ref(operand)))
            return
        vector = w.type(result)
        whole = "poison"
        for index in range(count):
            value = one(w.temp(f"extractelement {vector} {w.ref(operand)}, i32 {index}"))
            whole = w.temp(f"insertelement {vector} {whole}, {type} {value}, i32 {index}")
        w.bind(result, whole)

    return write


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
    *((kind, _through_f32(function)) for kind, function in _APPROXIMATE.items()),
    (math.AbsIOp, _with_flag("abs")),
    (math.CountLeadingZerosOp, _with_flag("ctlz")),
    (math.CountTrailingZerosOp, _with_flag("cttz")),
)
