# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`ptx`: mbarriers, as inline assembly that LLVM moves no access to memory across.

Registers and labels of its own stand in braces, which make their names local, since LLVM may copy the assembly.
"""

from xdsl.ir import Operation

from ...dialects import ptx
from .inline_assembly import call_ordered, ordered
from .writer import FunctionWriter, Rule, rule


def _arrive(w: FunctionWriter, op: ptx.MbarrierArriveOp | ptx.MbarrierArriveExpectTxOp) -> None:
    counted, letters = ("", "r") if len(op.operands) == 1 else (", $1", "r,r")
    if op.is_remote:  # returns no state
        w.emit(call_ordered(w, f"{op.mnemonic()} _, [$0]{counted};", letters, op.operands))
        return
    lines = ("{", ".reg .b64 state;", f"{op.mnemonic()} state, [$0]{counted};", "}")
    w.emit(call_ordered(w, lines, letters, op.operands))


def _arrive_state(w: FunctionWriter, op: ptx.MbarrierArriveStateOp) -> None:
    w.define(op.state, call_ordered(w, f"{op.mnemonic()} $0, [$1];", "=l,r", op.operands, "i64"))


def _test(w: FunctionWriter, op: ptx.MbarrierTestWaitOp | ptx.MbarrierTryWaitOp | ptx.MbarrierTryWaitStateOp) -> None:
    letters = "=r,r,l" if isinstance(op, ptx.MbarrierTryWaitStateOp) else "=r,r,r"
    lines = ("{", ".reg .pred done;", f"{op.mnemonic()} done, [$1], $2;", "selp.b32 $0, 1, 0, done;", "}")
    w.define(op.done, f"icmp ne i32 {w.temp(call_ordered(w, lines, letters, op.operands, 'i32'))}, 0")


def _wait(w: FunctionWriter, op: ptx.MbarrierWaitOp) -> None:
    test = op.test_on(w.module.target)
    lines = ("{", ".reg .pred done;", "AGAIN:", f"{test} done, [$0], $1;", "@!done bra AGAIN;", "}")
    w.emit(call_ordered(w, lines, "r,r", op.operands))


PTX_MBARRIER: tuple[tuple[type[Operation], Rule], ...] = (
    (ptx.MbarrierInitOp, ordered("[$0], $1")),
    (ptx.MbarrierExpectTxOp, ordered("[$0], $1")),
    (ptx.MbarrierCompleteTxOp, ordered("[$0], $1")),
    rule(ptx.MbarrierArriveExpectTxOp, _arrive),
    (ptx.MbarrierInvalOp, ordered("[$0]")),
    rule(ptx.MbarrierArriveOp, _arrive),
    rule(ptx.MbarrierArriveStateOp, _arrive_state),
    rule(ptx.MbarrierTryWaitStateOp, _test),
    rule(ptx.MbarrierTestWaitOp, _test),
    rule(ptx.MbarrierTryWaitOp, _test),
    rule(ptx.MbarrierWaitOp, _wait),
    (ptx.CpAsyncMbarrierArriveOp, ordered("[$0]")),
)
