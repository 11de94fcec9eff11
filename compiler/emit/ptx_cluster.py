# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`ptx`: clusters of blocks. Instructions that LLVM cannot select, or may move accesses across, are inline assembly."""

from xdsl.ir import Operation

from ...dialects import ptx
from ...dialects.ptx.base import REGISTER_LETTERS
from ...dialects.ptx.cluster import PEER_BIT
from .inline_assembly import effect, in_register, ordered, register
from .writer import FunctionWriter, Rule, call_rule, rule


def _getctarank(w: FunctionWriter, op: ptx.GetCtaRankOp) -> None:
    w.define(op.result, f'call i32 asm "{op.mnemonic()} $0, $1;", "=r,r"({w.typed(op.ptr)})')


def _leader(w: FunctionWriter, op: ptx.PairLeaderOp) -> None:
    text = f'asm "and.b32 $0, $1, {~PEER_BIT};", "=r,r"'
    w.define(op.result, f"call {w.type(op.result)} {text}({w.typed(op.ptr)})")


def _async(w: FunctionWriter, op: ptx.StAsyncOp | ptx.RedAsyncOp) -> None:
    """A store or a reduction of the registers that hold the value."""
    count, bits = ptx.access_registers(op.value.type)
    if count > 1:
        moved = f"<{count} x i{bits}>"
        value = w.temp(f"bitcast {w.typed(op.value)} to {moved}")
        given = [f"i{bits} {w.temp(f'extractelement {moved} {value}, i32 {index}')}" for index in range(count)]
        letters = [REGISTER_LETTERS[bits]] * count
    else:
        given, letters = [in_register(w, op.value, op)], [register(op.value.type, op)[1]]
    names = ", ".join(f"${index + 1}" for index in range(count))
    text = f"{op.mnemonic()} [$0], {f'{{{names}}}' if count > 1 else names}, [${count + 1}];"
    w.emit(effect(text, ["r", *letters, "r"], [w.typed(op.ptr), *given, w.typed(op.bar)]))


PTX_CLUSTER: tuple[tuple[type[Operation], Rule], ...] = (
    (ptx.MapaOp, call_rule("@llvm.nvvm.mapa.shared.cluster")),
    rule(ptx.PairLeaderOp, _leader),
    rule(ptx.GetCtaRankOp, _getctarank),
    rule(ptx.StAsyncOp, _async),
    rule(ptx.RedAsyncOp, _async),
    (ptx.ClusterArriveOp, ordered(convergent=True)),
    (ptx.ClusterWaitOp, ordered(convergent=True)),
    (ptx.FenceMbarrierInitOp, ordered(convergent=True)),
)
