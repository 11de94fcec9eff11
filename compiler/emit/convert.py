# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`arith`: conversions between types."""

from xdsl.dialects import arith
from xdsl.ir import Attribute, Operation

from ...dialects.ptx.types import float_bits, scalar_bits, split_vector
from ...layout.errors import Code
from ...passes.errors import LoweringError
from .writer import FunctionWriter, Rule

_CASTS: dict[type[Operation], str] = {
    arith.ExtSIOp: "sext",
    arith.ExtUIOp: "zext",
    arith.TruncIOp: "trunc",
    arith.SIToFPOp: "sitofp",
    arith.UIToFPOp: "uitofp",
    arith.BitcastOp: "bitcast",
}


def _cast(name: str) -> Rule:
    return lambda w, op: w.define(op.results[0], f"{name} {w.typed(op.operands[0])} to {w.type(op.results[0])}")


def _to_integer(name: str, signed: bool) -> Rule:
    """Truncation, saturating: cvt saturates to the type that it converts to (PTX ISA, cvt). LLVM has none of fewer than
    16 bits and would leave the upper ones away, so these are clamped.
    """

    def write(w: FunctionWriter, op: Operation) -> None:
        source, result = op.operands[0], op.results[0]
        element, count = split_vector(result.type)
        bits = scalar_bits(element)
        if bits is None or bits >= 16:
            w.define(result, f"{name} {w.typed(source)} to {w.type(result)}")
            return
        wide, suffix = (f"<{count} x i16>", f"v{count}i16") if count else ("i16", "i16")
        least, greatest = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
        value = w.temp(f"{name} {w.typed(source)} to {wide}")
        for function, limit in (("min", greatest), ("max", least)):
            operand = f"splat (i16 {limit})" if count else f"{limit}"
            call = f"@llvm.{'s' if signed else 'u'}{function}.{suffix}"
            value = w.temp(f"call {wide} {call}({wide} {value}, {wide} {operand})")
        w.define(result, f"trunc {wide} {value} to {w.type(result)}")

    return write


def _float_width(type: Attribute) -> tuple[int, int]:
    element, count = split_vector(type)
    return float_bits(element) or 0, count


def _resize(name: str, grows: bool) -> Rule:
    """Rounding to nearest even, or exact extension. xDSL accepts any two float types here, LLVM does not."""

    def write(w: FunctionWriter, op: Operation) -> None:
        source, result = op.operands[0], op.results[0]
        (old, old_count), (new, new_count) = _float_width(source.type), _float_width(result.type)
        if old_count != new_count or (new <= old if grows else new >= old):
            kind = "wider" if grows else "narrower"
            raise LoweringError(
                Code.EMIT_UNSUPPORTED,
                f"'{op.name}' from {source.type} to {result.type}: the result must be {kind}",
                op,
            )
        w.define(result, f"{name} {w.typed(source)} to {w.type(result)}")

    return write


CONVERT: tuple[tuple[type[Operation], Rule], ...] = (
    *((kind, _cast(name)) for kind, name in _CASTS.items()),
    (arith.FPToSIOp, _to_integer("fptosi", signed=True)),
    (arith.FPToUIOp, _to_integer("fptoui", signed=False)),
    (arith.ExtFOp, _resize("fpext", grows=True)),
    (arith.TruncFOp, _resize("fptrunc", grows=False)),
)
