# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`ptx`: cluster launch control. The request is inline assembly, which LLVM moves no access to memory across; the
queries put the answer into a register of 128 bits, which LLVM has no letter for.
"""

from xdsl.ir import Operation

from ...dialects import ptx
from .inline_assembly import ordered
from .text import quote
from .writer import FunctionWriter, Rule, rule


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
