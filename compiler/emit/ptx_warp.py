# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`ptx`: asynchronous copies, barriers and exchange between lanes, one NVVM intrinsic each; they are convergent, so
LLVM keeps the lanes together. Loads, stores and transpositions of matrices are intrinsics, or inline assembly where
LLVM has none.
"""

from xdsl.ir import Operation, SSAValue

from ...dialects import ptx
from ...layout.atoms.ptx_text import matrix_text, movmatrix_text
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
    if op.threads is None and op.count is None:
        w.emit(f"call void @llvm.nvvm.barrier.cta.sync{_aligned(op)}.all({_number(w, op)})")
        return
    operands = f"{_number(w, op)}, {_count(w, op)}"
    w.emit(f"call void @llvm.nvvm.barrier.cta.sync{_aligned(op)}.count({operands})")


def _bar_arrive(w: FunctionWriter, op: ptx.BarArriveOp) -> None:
    operands = f"{_number(w, op)}, {_count(w, op)}"
    w.emit(f"call void @llvm.nvvm.barrier.cta.arrive{_aligned(op)}.count({operands})")


def _aligned(op: ptx.BarSyncOp | ptx.BarArriveOp) -> str:
    return ".aligned" if op.unaligned is None else ""


def _count(w: FunctionWriter, op: ptx.BarSyncOp | ptx.BarArriveOp | ptx.BarRedOp) -> str:
    """The number of threads of a barrier as an operand; empty for all of the block."""
    if op.threads is not None:
        return f"i32 {op.threads.value.data}"
    return "" if op.count is None else w.typed(op.count)


def _number(w: FunctionWriter, op: ptx.BarSyncOp | ptx.BarArriveOp | ptx.BarRedOp) -> str:
    """The number of a barrier as an operand."""
    first = op.id.value.data
    if op.offset is None:
        return f"i32 {first}"
    return w.typed(op.offset) if first == 0 else f"i32 {w.temp(f'add {w.typed(op.offset)}, {first}')}"


def _bar_red(w: FunctionWriter, op: ptx.BarRedOp) -> None:
    given = [f"i32 {w.temp(f'zext {w.typed(op.predicate)} to i32')}", _number(w, op), _count(w, op)]
    given = [operand for operand in given if operand]
    letters = ["r" if "%" in operand else "n" for operand in given]
    counts = op.kind.data == "popc"
    where = ", ".join(f"${index}" for index in range(2, len(given) + 1))
    reduced = f"{op.mnemonic()} {'$0' if counts else 'any'}, {where}, given;"
    lines = ("{", ".reg .pred given, any;", "setp.ne.b32 given, $1, 0;", reduced)
    lines = (*lines, "}") if counts else (*lines, "selp.b32 $0, 1, 0, any;", "}")
    call = effect("\n\t".join(lines), ["=r", *letters], given, "i32") + " convergent"
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


def _mask(w: FunctionWriter, mask: SSAValue | None) -> str:
    return "i32 -1" if mask is None else w.typed(mask)


def _shfl(w: FunctionWriter, op: ptx.ShflSyncOp) -> None:
    type = w.type(op.value)
    value = w.ref(op.value) if type == "i32" else w.temp(f"bitcast {w.typed(op.value)} to i32")
    operands = f"{_mask(w, op.mask)}, i32 {value}, {w.typed(op.lane)}, i32 {op.control}"
    exchanged = w.temp(f"call i32 @llvm.nvvm.shfl.sync.{op.mode.data}.i32({operands})")
    w.bind(op.result, exchanged if type == "i32" else w.temp(f"bitcast i32 {exchanged} to {type}"))


def _shfl_valid(w: FunctionWriter, op: ptx.ShflSyncValidOp) -> None:
    type = w.type(op.value)
    value = w.ref(op.value) if type == "i32" else w.temp(f"bitcast {w.typed(op.value)} to i32")
    operands = f"{_mask(w, op.mask)}, i32 {value}, {w.typed(op.lane)}, {w.typed(op.control)}"
    pair = w.temp(f"call {{ i32, i1 }} @llvm.nvvm.shfl.sync.{op.mode.data}.i32p({operands})")
    w.define(op.valid, f"extractvalue {{ i32, i1 }} {pair}, 1")
    exchanged = w.temp(f"extractvalue {{ i32, i1 }} {pair}, 0")
    w.bind(op.result, exchanged if type == "i32" else w.temp(f"bitcast i32 {exchanged} to {type}"))


def _vote(w: FunctionWriter, op: ptx.VoteSyncOp) -> None:
    name = f"llvm.nvvm.vote.{op.mode.data}.sync"
    w.define(op.result, f"call {w.type(op.result)} @{name}({_mask(w, op.mask)}, {w.typed(op.predicate)})")


def _match(w: FunctionWriter, op: ptx.MatchAnySyncOp) -> None:
    w.define(op.result, f"call i32 @llvm.nvvm.match.any.sync.i32({_mask(w, op.mask)}, {w.typed(op.value)})")


def _redux(w: FunctionWriter, op: ptx.ReduxSyncOp) -> None:
    if op.is_float:
        text = f"{op.mnemonic()} $0, $1, $2;"
        operands = f"{w.typed(op.value)}, {_mask(w, op.mask)}"
        w.define(op.result, f'call float asm sideeffect "{text}", "=f,f,r"({operands}) convergent')
        return
    w.define(op.result, f"call i32 @llvm.nvvm.redux.sync.{op.kind.data}({w.typed(op.value)}, {_mask(w, op.mask)})")


def _elect(w: FunctionWriter, op: ptx.ElectSyncOp) -> None:
    pair = w.temp(f"call {{ i32, i1 }} @llvm.nvvm.elect.sync({_mask(w, op.mask)})")
    w.define(op.result, f"extractvalue {{ i32, i1 }} {pair}, 1")


def _activemask(w: FunctionWriter, op: ptx.ActivemaskOp) -> None:
    w.define(op.result, 'call i32 asm sideeffect "activemask.b32 $0;", "=r"() convergent')


PTX_LANES: tuple[tuple[type[Operation], Rule], ...] = (
    rule(ptx.ShflSyncOp, _shfl),
    rule(ptx.ShflSyncValidOp, _shfl_valid),
    rule(ptx.VoteSyncOp, _vote),
    rule(ptx.MatchAnySyncOp, _match),
    rule(ptx.ReduxSyncOp, _redux),
    rule(ptx.ElectSyncOp, _elect),
    rule(ptx.ActivemaskOp, _activemask),
)


def _ldmatrix(w: FunctionWriter, op: ptx.LdMatrixOp) -> None:
    count, pointer = op.registers, w.typed(op.ptr)
    returned = "i32" if count == 1 else f"{{ {', '.join(['i32'] * count)} }}"
    if op.shape is None:
        trans = ".trans" if op.trans is not None else ""
        name = f"llvm.nvvm.ldmatrix.sync.aligned.m8n8.x{op.num.value.data}{trans}.b16.p3"
        fragments = w.temp(f"call {returned} @{name}({pointer})")
    else:
        text = matrix_text(op.instruction, "$")
        fragments = w.temp(f"{effect(text, [*['=r'] * count, 'r'], [pointer], returned)} convergent")
    type, whole = w.type(op.result), "poison"
    for index in range(count):
        part = fragments if count == 1 else w.temp(f"extractvalue {returned} {fragments}, {index}")
        whole = w.temp(f"insertelement {type} {whole}, i32 {part}, i32 {index}")
    w.bind(op.result, whole)


def _stmatrix(w: FunctionWriter, op: ptx.StMatrixOp) -> None:
    count, pointer, value = op.registers, w.typed(op.ptr), w.typed(op.value)
    parts = [f"i32 {w.temp(f'extractelement {value}, i32 {index}')}" for index in range(count)]
    operands = [pointer, *parts]
    if op.shape is None:
        trans = ".trans" if op.trans is not None else ""
        name = f"llvm.nvvm.stmatrix.sync.aligned.m8n8.x{op.num.value.data}{trans}.b16.p3"
        w.emit(f"call void @{name}({', '.join(operands)})")
    else:
        text = matrix_text(op.instruction, "$")
        w.emit(f"{effect(text, ['r'] * (count + 1), operands)} convergent")


def _movmatrix(w: FunctionWriter, op: ptx.MovMatrixOp) -> None:
    text = movmatrix_text("$")
    w.define(op.result, f'call i32 asm sideeffect "{text}", "=r,r"({w.typed(op.value)}) convergent')


PTX_MATRIX: tuple[tuple[type[Operation], Rule], ...] = (
    rule(ptx.LdMatrixOp, _ldmatrix),
    rule(ptx.StMatrixOp, _stmatrix),
    rule(ptx.MovMatrixOp, _movmatrix),
)
