# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`arith`: conversions between types, and those of the dialect `llvm`, which must not be narrowed by LLVM either."""

from xdsl.dialects import arith
from xdsl.dialects.builtin import BFloat16Type, Float16Type, Float32Type, f32
from xdsl.ir import Attribute, Operation, SSAValue

from ...base.errors import Code
from ...dialects.ptx.base import float_bits, scalar_bits, split_vector
from ...passes.errors import LoweringError
from .types import llvm_type, overload
from .vector import write_by_elements
from .writer import FunctionWriter, Rule

_CASTS: dict[type[Operation], str] = {
    arith.ExtSIOp: "sext",
    arith.ExtUIOp: "zext",
    arith.TruncIOp: "trunc",
    arith.BitcastOp: "bitcast",
}


_TO_FLOAT = frozenset(("arith.extf", "arith.sitofp", "arith.uitofp", "llvm.fpext", "llvm.sitofp", "llvm.uitofp"))
"""Exact conversions to wider floats, and those of integers, which LLVM joins with a rounding that follows."""


def cast(name: str) -> Rule:
    """The rule of a conversion that is one instruction."""
    return lambda w, op: w.define(op.results[0], f"{name} {w.typed(op.operands[0])} to {w.type(op.results[0])}")


def from_integer(signed: bool) -> Rule:
    """The nearest number. That of bf16 is found by way of f32, whose last bit says whether anything was lost: LLVM
    would round twice before sm_90, and take a true i1 for 1 from there on.
    """
    name, extension = ("sitofp", "sext") if signed else ("uitofp", "zext")

    def write(w: FunctionWriter, op: Operation) -> None:
        (source,), (result,) = op.operands, op.results
        (element, count), (made, _) = split_vector(source.type), split_vector(result.type)
        if not isinstance(made, BFloat16Type):
            w.define(result, f"{name} {w.typed(source)} to {w.type(result)}")
            return
        bits, type = scalar_bits(element) or 0, llvm_type(element, op)
        sign, letters, integer = "" if signed else "u", *(("ll", "i64") if bits > 32 else ("i", "i32"))

        def rounded(value: str) -> str:
            if bits < 32:
                value = w.temp(f"{extension} {type} {value} to i32")
            near = w.temp(f"call float @llvm.nvvm.{sign}{letters}2f.rz({integer} {value})")
            if bits >= 32:
                back = w.temp(f"call {integer} @llvm.nvvm.f2{sign}{letters}.rz(float {near})")
                lost = w.temp(f"zext i1 {w.temp(f'icmp ne {integer} {back}, {value}')} to i32")
                odd = w.temp(f"or i32 {w.temp(f'bitcast float {near} to i32')}, {lost}")
                near = w.temp(f"bitcast i32 {odd} to float")
            return f"fptrunc float {near} to bfloat"

        if count:
            write_by_elements(w, source, result, lambda value: w.temp(rounded(value)))
        else:
            w.define(result, rounded(w.ref(source)))

    return write


def _to_integer(signed: bool) -> Rule:
    """Truncation, saturating, to 32 or 64 bits (PTX ISA, cvt), and by a clamp to fewer. LLVM's own conversions are not
    defined beyond the type, so that constants would become anything.
    """

    def write(w: FunctionWriter, op: Operation) -> None:
        source, result = op.operands[0], op.results[0]
        width, bits = float_bits(source.type) or 0, scalar_bits(result.type) or 0
        number, integer = "double" if width == 64 else "float", "i64" if bits > 32 else "i32"
        function = f"{number[0]}2{'' if signed else 'u'}{'ll' if bits > 32 else 'i'}.rz"
        value = w.ref(source) if width >= 32 else w.temp(f"fpext {w.typed(source)} to float")
        text = f"call {integer} @llvm.nvvm.{function}({number} {value})"
        if bits < 32:
            least, greatest = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
            for name, limit in (("min", greatest), ("max", least)):
                text = f"call i32 @llvm.{'s' if signed else 'u'}{name}.i32(i32 {w.temp(text)}, i32 {limit})"
            text = f"trunc i32 {w.temp(text)} to {w.type(result)}"
        w.define(result, text)

    return write


def _float_width(type: Attribute) -> tuple[int, int]:
    element, count = split_vector(type)
    return float_bits(element) or 0, count


def _check_resize(op: Operation, grows: bool) -> None:
    """LoweringError unless the result is wider, or narrower: xDSL accepts any two float types here, LLVM does not."""
    source, result = op.operands[0], op.results[0]
    (old, old_count), (new, new_count) = _float_width(source.type), _float_width(result.type)
    if old_count != new_count or (new <= old if grows else new >= old):
        kind = "wider" if grows else "narrower"
        raise LoweringError(
            Code.EMIT_UNSUPPORTED, f"'{op.name}' from {source.type} to {result.type}: the result must be {kind}", op
        )


def extend(w: FunctionWriter, op: Operation) -> None:
    """The rule of an exact extension."""
    _check_resize(op, grows=True)
    w.define(op.results[0], f"fpext {w.typed(op.operands[0])} to {w.type(op.results[0])}")


def find_fenced_roundings(root: Operation) -> frozenset[type[Attribute]]:
    """The types to which numbers must be rounded behind a fence, in a kernel or in functions that call one another.

    LLVM makes f16(f32(a) * f32(b)) a product of f16, which does not hold every bf16. It makes bf16(f64(i)) of an
    integer one conversion, which rounds twice before sm_90 and takes a true i1 for 1 from there on. A remainder it
    takes in the type of one operand, which may not hold the other; it ends the process where they are bf16 and f16. Its
    other ways to narrow rounded values do not change numbers: products of 16-bit types are exact in f32, or round to 0
    in either, and sums and quotients of types with less than half the bits are rounded as if once (Figueroa, When is
    double rounding innocuous?, 1995).
    """
    types: set[type[Attribute]] = set()
    for op in root.walk():
        match op.name:  # that of a class would import xDSL's dialect `llvm`, which few kernels need
            case "arith.extf" | "llvm.fpext":
                if isinstance(split_vector(op.operands[0].type)[0], BFloat16Type):
                    types.add(Float16Type)
            case "arith.sitofp" | "arith.uitofp" | "llvm.sitofp":
                types.add(BFloat16Type)
            case "llvm.frem":
                types |= {BFloat16Type, Float32Type}
            case _:
                pass
    return frozenset(types)


def _is_rounded_in_pairs(source: SSAValue, result: SSAValue) -> bool:
    """Whether one `cvt` rounds two such numbers, which LLVM writes where both roundings stand in one block. A fence
    keeps them there. Without it LLVM moves each into the paths that join before it, where all but one bring a constant:
    the sum of a loop that may not have begun. A number that LLVM may compute in a narrower type needs no fence.
    """
    if source.type != f32 or not isinstance(result.type, Float16Type | BFloat16Type):
        return False
    beside = source.owner.operands if isinstance(source.owner, Operation) else ()
    return not any(isinstance(x.owner, Operation) and x.owner.name in _TO_FLOAT for x in (source, *beside))


def round_to_even(w: FunctionWriter, op: Operation) -> None:
    """The rule of a rounding to the nearest number, ties to even."""
    _check_resize(op, grows=False)
    source, result = op.operands[0], op.results[0]
    type, value = w.type(source), w.ref(source)
    if split_vector(result.type)[0].__class__ in w.fenced_roundings or _is_rounded_in_pairs(source, result):
        value = w.temp(f"call {type} @llvm.arithmetic.fence.{overload(type)}({type} {value})")  # no instruction
    w.define(result, f"fptrunc {type} {value} to {w.type(result)}")


CONVERT: tuple[tuple[type[Operation], Rule], ...] = (
    *((kind, cast(name)) for kind, name in _CASTS.items()),
    (arith.SIToFPOp, from_integer(signed=True)),
    (arith.UIToFPOp, from_integer(signed=False)),
    (arith.FPToSIOp, _to_integer(signed=True)),
    (arith.FPToUIOp, _to_integer(signed=False)),
    (arith.ExtFOp, extend),
    (arith.TruncFOp, round_to_even),
)
