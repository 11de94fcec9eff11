# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`arith`: conversions between types."""

from xdsl.dialects import arith
from xdsl.ir import Attribute, Operation

from ...layout.errors import Code
from .errors import EmitError
from .types import float_bits, split_vector
from .writer import FunctionWriter, Rule, rule

_CASTS: dict[type[Operation], str] = {
    arith.ExtSIOp: "sext",
    arith.ExtUIOp: "zext",
    arith.TruncIOp: "trunc",
    arith.SIToFPOp: "sitofp",
    arith.UIToFPOp: "uitofp",
    arith.FPToSIOp: "fptosi",
    arith.FPToUIOp: "fptoui",
    arith.BitcastOp: "bitcast",
}


def _cast(name: str) -> Rule:
    return lambda w, op: w.define(
        op.results[0], f"{name} {w.typed(op.operands[0])} to {w.type(op.results[0])}"
    )


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
            raise EmitError(
                Code.EMIT_UNSUPPORTED,
                op,
                f"'{op.name}' from {source.type} to {result.type}: the result must be {kind}",
            )
        w.define(result, f"{name} {w.typed(source)} to {w.type(result)}")

    return write


def _index_cast(w: FunctionWriter, op: arith.IndexCastOp) -> None:
    """`index` is 64 bits wide: signed extension to it, truncation from it."""
    old, new = w.type(op.input), w.type(op.result)
    if old == new:
        w.bind(op.result, w.ref(op.input))
    else:
        name = "sext" if new == "i64" else "trunc"
        w.define(op.result, f"{name} {w.typed(op.input)} to {new}")


CONVERT: tuple[tuple[type[Operation], Rule], ...] = (
    *((kind, _cast(name)) for kind, name in _CASTS.items()),
    (arith.ExtFOp, _resize("fpext", grows=True)),
    (arith.TruncFOp, _resize("fptrunc", grows=False)),
    rule(arith.IndexCastOp, _index_cast),
)
