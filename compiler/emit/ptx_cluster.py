# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`ptx`: clusters of blocks, and the control of their launch. Instructions that LLVM cannot select, or may move
accesses across, are inline assembly. The answer of a request for another cluster is in a register of 128 bits, which
LLVM has no letter for.
"""

from xdsl.ir import Operation

from ...dialects import ptx
from ...dialects.ptx.base import REGISTER_LETTERS
from ...dialects.ptx.cluster import PEER_BIT
from .inline_assembly import effect, in_register, ordered, register
from .types import quote
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


def _query(
    w: FunctionWriter, op: ptx.IsCanceledOp | ptx.FirstCtaidOp, lines: tuple[str, ...], outputs: str, type: str
) -> str:
    """Instructions on the answer, whose halves are their last operands; the value of their outputs."""
    halves = [f"i64 {w.temp(f'extractelement {w.typed(op.answer)}, i32 {half}')}" for half in range(2)]
    text = quote("\n\t".join(("{", ".reg .b128 answer;", *lines, "}")))
    return w.temp(f'call {type} asm {text}, "{outputs},l,l"({", ".join(halves)})')


def _is_canceled(w: FunctionWriter, op: ptx.IsCanceledOp) -> None:
    lines = (
        ".reg .pred canceled;", "mov.b128 answer, {$1, $2};", f"{op.mnemonic()} canceled, answer;",
        "selp.b32 $0, 1, 0, canceled;",
    )  # fmt: skip
    w.define(op.result, f"icmp ne i32 {_query(w, op, lines, '=r', 'i32')}, 0")


def _first_ctaid(w: FunctionWriter, op: ptx.FirstCtaidOp) -> None:
    lines = (".reg .b32 none;", "mov.b128 answer, {$3, $4};", f"{op.mnemonic()} {{$0, $1, $2, none}}, answer;")
    type = "{ i32, i32, i32 }"
    found = _query(w, op, lines, "=r,=r,=r", type)
    for axis, result in enumerate(op.results):
        w.define(result, f"extractvalue {type} {found}, {axis}")


PTX_LAUNCH_CONTROL: tuple[tuple[type[Operation], Rule], ...] = (
    (ptx.TryCancelOp, ordered("[$0], [$1]")),
    rule(ptx.IsCanceledOp, _is_canceled),
    rule(ptx.FirstCtaidOp, _first_ctaid),
)
