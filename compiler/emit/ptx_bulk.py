# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`ptx`: bulk copies, their groups and the fence of their proxy, as inline assembly."""

from xdsl.ir import Operation

from ...dialects import ptx
from .inline_assembly import call_ordered
from .writer import FunctionWriter, Rule, rule


def _load(w: FunctionWriter, op: ptx.BulkLoadOp) -> None:
    policy, letter = _policy(op, 4)
    w.emit(call_ordered(w, f"{op.mnemonic()} [$0], [$1], $2, [$3]{policy};", f"r,l,r,r{letter}", op.operands))


def _send(w: FunctionWriter, op: ptx.BulkSendOp) -> None:
    w.emit(call_ordered(w, f"{op.mnemonic()} [$0], [$1], $2, [$3];", "r,r,r,r", op.operands))


def _store(w: FunctionWriter, op: ptx.BulkStoreOp | ptx.BulkReduceOp) -> None:
    policy, letter = _policy(op, 3)
    w.emit(call_ordered(w, f"{op.mnemonic()} [$0], [$1], $2{policy};", f"l,r,r{letter}", op.operands))


def _prefetch(w: FunctionWriter, op: ptx.BulkPrefetchOp) -> None:
    policy, letter = _policy(op, 2)
    w.emit(call_ordered(w, f"{op.mnemonic()} [$0], $1{policy};", f"l,r{letter}", op.operands))


def _policy(
    op: ptx.BulkLoadOp | ptx.BulkStoreOp | ptx.BulkReduceOp | ptx.BulkPrefetchOp, place: int
) -> tuple[str, str]:
    """The text that a cache policy, operand number `place`, adds to the instruction and to its constraints."""
    return ("", "") if op.policy is None else (f", ${place}", ",l")


def _alone(w: FunctionWriter, op: ptx.BulkCommitGroupOp | ptx.FenceProxyAsyncOp) -> None:
    w.emit(call_ordered(w, f"{op.mnemonic()};", "", ()))


def _wait_group(w: FunctionWriter, op: ptx.BulkWaitGroupOp) -> None:
    w.emit(call_ordered(w, f"{op.mnemonic()} {op.n.value.data};", "", ()))


PTX_BULK: tuple[tuple[type[Operation], Rule], ...] = (
    rule(ptx.BulkLoadOp, _load),
    rule(ptx.BulkSendOp, _send),
    rule(ptx.BulkStoreOp, _store),
    rule(ptx.BulkReduceOp, _store),
    rule(ptx.BulkPrefetchOp, _prefetch),
    rule(ptx.BulkCommitGroupOp, _alone),
    rule(ptx.BulkWaitGroupOp, _wait_group),
    rule(ptx.FenceProxyAsyncOp, _alone),
)
