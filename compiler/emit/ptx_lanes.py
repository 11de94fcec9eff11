# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`ptx`: exchange between lanes, one NVVM intrinsic each; they are convergent, so LLVM keeps the lanes together."""

from xdsl.ir import Operation, SSAValue

from ...dialects import ptx
from .writer import FunctionWriter, Rule, rule


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
