# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`ptx`: tensor maps in memory. Instructions that order or change them are inline assembly, across which LLVM moves no
access."""

from xdsl.ir import Operation

from ...dialects import ptx
from ...dialects.ptx.types import make_constraint
from .inline_assembly import call_ordered, ordered
from .writer import FunctionWriter, Rule, rule


def _cvta(w: FunctionWriter, op: ptx.CvtaTensorMapOp) -> None:
    w.define(op.result, f"addrspacecast {w.typed(op.ptr)} to {w.type(op.result)}")


def _copy(w: FunctionWriter, op: ptx.CopyTensorMapOp) -> None:
    """Loads and stores of 16 bytes, all loads first; the map is a constant parameter, or in memory."""
    letter = make_constraint(op.ptr.type) or ""
    space = "global" if letter == "l" else "shared"
    offsets, names = range(0, ptx.MAP_BYTES, 16), [f"v{number}" for number in range(ptx.MAP_BYTES // 8)]
    pairs = [", ".join(names[offset // 8 :][:2]) for offset in offsets]
    loads = (f"ld.v2.b64 {{{pair}}}, [$0+{offset}];" for pair, offset in zip(pairs, offsets, strict=True))
    stores = (f"st.{space}.v2.b64 [$1+{offset}], {{{pair}}};" for pair, offset in zip(pairs, offsets, strict=True))
    lines = ("{", f".reg .b64 {', '.join(names)};", *loads, *stores, "}")
    w.emit(call_ordered(w, lines, f"l,{letter}", op.operands))


def _load(w: FunctionWriter, op: ptx.LoadTensorMapOp) -> None:
    text = f'asm sideeffect "{op.mnemonic()} $0, [$1+{op.offset.value.data}];", "=l,l,~{{memory}}"'
    w.define(op.result, f"call i64 {text}({w.typed(op.map)})")


def _replace(w: FunctionWriter, op: ptx.TensorMapReplaceOp) -> None:
    field, letter = ptx.MAP_FIELDS[op.field.data], make_constraint(op.ptr.type)
    ordinal = "" if op.ordinal is None else f" {op.dimension},"
    if op.word is not None:
        w.emit(call_ordered(w, f"{op.mnemonic()} [$0], {field.words.index(op.word.data)};", f"{letter}", op.operands))
        return
    letters = f"{letter},{'l' if field.bits == 64 else 'r'}"
    w.emit(call_ordered(w, f"{op.mnemonic()} [$0],{ordinal} $1;", letters, op.operands))


PTX_TENSOR_MAP: tuple[tuple[type[Operation], Rule], ...] = (
    rule(ptx.CvtaTensorMapOp, _cvta),
    rule(ptx.CopyTensorMapOp, _copy),
    rule(ptx.LoadTensorMapOp, _load),
    rule(ptx.TensorMapReplaceOp, _replace),
    (ptx.FenceTensorMapReleaseOp, ordered()),
    (ptx.FenceTensorMapAcquireOp, ordered(f"[$0], {ptx.MAP_BYTES}")),
    (ptx.TensorMapCpFenceOp, ordered(f"[$0], [$1], {ptx.MAP_BYTES}", convergent=True)),
)
