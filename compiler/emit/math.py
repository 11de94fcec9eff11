# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`math`: functions that PTX computes by one instruction, or by one with a scaled operand or result.

exp, exp2, log, log2, log10, sin, cos, tanh and rsqrt are PTX's approximations (PTX ISA, ex2.approx, lg2.approx,
sin.approx, cos.approx, tanh.approx, rsqrt.approx, where their errors are stated), computed in f32; erf is a
polynomial below 1/2 and formula 7.1.26 of Abramowitz and Stegun above, with an error of at most 2^-20, relative and
absolute. f16 and bf16 operands are extended to f32 before and rounded after. f64 has no such instructions. The other
functions are exact or correctly rounded.
"""

from collections.abc import Callable, Sequence

from xdsl.dialects import math
from xdsl.ir import Operation

from ...base.errors import Code
from ...dialects.ptx.types import float_bits, split_vector
from ...passes.errors import LoweringError
from .arith import intrinsic
from .types import float_text, llvm_type, overload
from .vector import write_by_elements
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
_LOG2_E = "0x3FF7154760000000"  # log2(e), ln(2) and log10(2), rounded to f32
_LN_2 = "0x3FE62E4300000000"
_LOG10_2 = "0x3FD3441360000000"

_ERF_SERIES = (-0.000854832709, 0.00522397762, -0.0268661706, 0.112837917, -0.376126389, 1.128379167)
"""Coefficients of the Taylor series of erf(x) / x in x * x, the highest first."""
_ERF_TAIL = (1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592)
"""Coefficients in t = 1 / (1 + p * x), the highest first (Abramowitz and Stegun, 7.1.26)."""
_ERF_P = 0.3275911


def _exp2(w: FunctionWriter, x: str) -> str:
    return w.temp(f"call float @llvm.nvvm.ex2.approx.f32(float {x})")


def _log2(w: FunctionWriter, x: str) -> str:
    return w.temp(f"call float @llvm.nvvm.lg2.approx.f(float {x})")


def _exp(w: FunctionWriter, x: str) -> str:
    return _exp2(w, w.temp(f"fmul float {x}, {_LOG2_E}"))


def _log(w: FunctionWriter, x: str) -> str:
    return w.temp(f"fmul float {_log2(w, x)}, {_LN_2}")


def _log10(w: FunctionWriter, x: str) -> str:
    return w.temp(f"fmul float {_log2(w, x)}, {_LOG10_2}")


def _fma(w: FunctionWriter, a: str, b: str, c: str) -> str:
    return w.temp(f"call float @llvm.fma.f32(float {a}, float {b}, float {c})")


def _polynomial(w: FunctionWriter, coefficients: Sequence[float], x: str) -> str:
    value = float_text(coefficients[0])
    for coefficient in coefficients[1:]:
        value = _fma(w, value, x, float_text(coefficient))
    return value


def _write_erf(w: FunctionWriter, x: str) -> str:
    square = w.temp(f"fmul float {x}, {x}")
    near = w.temp(f"fmul float {x}, {_polynomial(w, _ERF_SERIES, square)}")
    size = w.temp(f"call float @llvm.fabs.f32(float {x})")
    scaled = _fma(w, size, float_text(_ERF_P), float_text(1.0))
    t = w.temp(f"call float @llvm.nvvm.rcp.approx.ftz.f(float {scaled})")
    tail = w.temp(f"fmul float {t}, {_polynomial(w, _ERF_TAIL, t)}")
    power = _exp(w, w.temp(f"fneg float {square}"))
    far = w.temp(f"fsub float {float_text(1.0)}, {w.temp(f'fmul float {tail}, {power}')}")
    signed = w.temp(f"call float @llvm.copysign.f32(float {far}, float {x})")
    is_near = w.temp(f"fcmp olt float {size}, {float_text(0.5)}")
    return w.temp(f"select i1 {is_near}, float {near}, float {signed}")


def _approximate(name: str) -> Callable[[FunctionWriter, str], str]:
    return lambda w, x: w.temp(f"call afn float @llvm.{name}.f32(float {x})")


def _rsqrt(w: FunctionWriter, x: str) -> str:
    return w.temp(f"call float @llvm.nvvm.rsqrt.approx.f(float {x})")


_APPROXIMATE: dict[type[Operation], Callable[[FunctionWriter, str], str]] = {
    math.ExpOp: _exp,
    math.Exp2Op: _exp2,
    math.LogOp: _log,
    math.Log2Op: _log2,
    math.Log10Op: _log10,
    math.ErfOp: _write_erf,
    math.SinOp: _approximate("sin"),
    math.CosOp: _approximate("cos"),
    math.TanhOp: _approximate("tanh"),
    math.RsqrtOp: _rsqrt,
}


def _make_f32_rule(function: Callable[[FunctionWriter, str], str]) -> Rule:
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

        def call_unary(x: str) -> str:
            if bits == 32:
                return function(w, x)
            wide = function(w, w.temp(f"fpext {type} {x} to float"))
            return w.temp(f"fptrunc float {wide} to {type}")

        if count:
            write_by_elements(w, operand, result, call_unary)
        else:
            w.bind(result, call_unary(w.ref(operand)))

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
    *((kind, _make_f32_rule(function)) for kind, function in _APPROXIMATE.items()),
    (math.AbsIOp, _with_flag("abs")),
    (math.CountLeadingZerosOp, _with_flag("ctlz")),
    (math.CountTrailingZerosOp, _with_flag("cttz")),
)
