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
    (arith.FPToSIOp, _to_integer(signed=True)),
    (arith.FPToUIOp, _to_integer(signed=False)),
    (arith.ExtFOp, _resize("fpext", grows=True)),
    (arith.TruncFOp, _resize("fptrunc", grows=False)),
)
