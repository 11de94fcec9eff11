# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`ptx`: asynchronous copies and barriers, one NVVM intrinsic each."""

from xdsl.ir import Operation

from ...dialects import ptx
from .hinted_accesses import copy_by_assembly
from .inline_assembly import effect, ordered
from .writer import FunctionWriter, Rule, call_rule, rule


def _cp_async(w: FunctionWriter, op: ptx.CpAsyncOp) -> None:
    if op.prefetch is not None or op.policy is not None:
        copy_by_assembly(w, op)
        return
    sized = ".s" if op.src_size is not None else ""
    w.call(op, f"@llvm.nvvm.cp.async.{op.cache.data}.shared.global.{op.bytes.value.data}{sized}")


def _wait_group(w: FunctionWriter, op: ptx.CpAsyncWaitGroupOp) -> None:
    w.emit(f"call void @llvm.nvvm.cp.async.wait.group(i32 {op.n.value.data})")


def _bar_sync(w: FunctionWriter, op: ptx.BarSyncOp) -> None:
    if op.threads is None:
        w.emit(f"call void @llvm.nvvm.barrier.cta.sync.aligned.all({_number(w, op)})")
        return
    operands = f"{_number(w, op)}, i32 {op.threads.value.data}"
    w.emit(f"call void @llvm.nvvm.barrier.cta.sync.aligned.count({operands})")


def _bar_arrive(w: FunctionWriter, op: ptx.BarArriveOp) -> None:
    operands = f"{_number(w, op)}, i32 {op.threads.value.data}"
    w.emit(f"call void @llvm.nvvm.barrier.cta.arrive.aligned.count({operands})")


def _number(w: FunctionWriter, op: ptx.BarSyncOp | ptx.BarArriveOp) -> str:
    """The number of a barrier as an operand."""
    first = op.id.value.data
    if op.offset is None:
        return f"i32 {first}"
    return w.typed(op.offset) if first == 0 else f"i32 {w.temp(f'add {w.typed(op.offset)}, {first}')}"


def _bar_red(w: FunctionWriter, op: ptx.BarRedOp) -> None:
    where = f"{op.id.value.data}" + ("" if op.threads is None else f", {op.threads.value.data}")
    counts = op.kind.data == "popc"
    reduced = f"{op.mnemonic()} {'$0' if counts else 'any'}, {where}, given;"
    lines = ("{", ".reg .pred given, any;", "setp.ne.b32 given, $1, 0;", reduced)
    lines = (*lines, "}") if counts else (*lines, "selp.b32 $0, 1, 0, any;", "}")
    given = f"i32 {w.temp(f'zext {w.typed(op.predicate)} to i32')}"
    call = effect("\n\t".join(lines), ["=r", "r"], [given], "i32") + " convergent"
    w.define(op.result, call if counts else f"icmp ne i32 {w.temp(call)}, 0")


def _bar_warp_sync(w: FunctionWriter, op: ptx.BarWarpSyncOp) -> None:
    mask = f"i32 {op.mask.value.data}" if op.lanes is None else w.typed(op.lanes)
    w.emit(f"call void @llvm.nvvm.bar.warp.sync({mask})")


def _ret(w: FunctionWriter, op: ptx.RetOp) -> None:
    w.emit("ret void")


PTX_WARP: tuple[tuple[type[Operation], Rule], ...] = (
    rule(ptx.CpAsyncOp, _cp_async),
    (ptx.CpAsyncCommitGroupOp, call_rule("@llvm.nvvm.cp.async.commit.group")),
    rule(ptx.CpAsyncWaitGroupOp, _wait_group),
    (ptx.CpAsyncWaitAllOp, call_rule("@llvm.nvvm.cp.async.wait.all")),
    rule(ptx.BarSyncOp, _bar_sync),
    rule(ptx.BarArriveOp, _bar_arrive),
    rule(ptx.BarRedOp, _bar_red),
    rule(ptx.BarWarpSyncOp, _bar_warp_sync),
    (ptx.GridDependencyWaitOp, ordered()),
    (ptx.LaunchDependentsOp, ordered()),
    rule(ptx.RetOp, _ret),
)
