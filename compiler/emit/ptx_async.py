# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`ptx`: mbarriers, bulk and TMA copies, and tensor maps in memory, as inline assembly that LLVM moves no access to
memory across.

Registers and labels of its own stand in braces, which make their names local, since LLVM may copy the assembly.
"""

from xdsl.ir import Operation, SSAValue

from ...base.spaces import GMEM, SMEM
from ...dialects import ptx
from ...dialects.ptx.base import make_constraint
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
    counted, letters = ("", "=l,r") if op.count is None else (", $2", "=l,r,r")
    w.define(op.state, call_ordered(w, f"{op.mnemonic()} $0, [$1]{counted};", letters, op.operands, "i64"))


def _test(w: FunctionWriter, op: ptx.MbarrierTestWaitOp | ptx.MbarrierTryWaitOp | ptx.MbarrierTryWaitStateOp) -> None:
    letters = "=r,r,l" if isinstance(op, ptx.MbarrierTryWaitStateOp) else "=r,r,r"
    lines = ("{", ".reg .pred done;", f"{op.mnemonic()} done, [$1], $2;", "selp.b32 $0, 1, 0, done;", "}")
    w.define(op.done, f"icmp ne i32 {w.temp(call_ordered(w, lines, letters, op.operands, 'i32'))}, 0")


def _wait(w: FunctionWriter, op: ptx.MbarrierWaitOp) -> None:
    test = op.test_on(w.module.target)
    lines = ("{", ".reg .pred done;", "AGAIN:", f"{test} done, [$0], $1;", "@!done bra AGAIN;", "}")
    w.emit(call_ordered(w, lines, "r,r", op.operands))


def _wait_group(w: FunctionWriter, op: ptx.BulkWaitGroupOp) -> None:
    w.emit(call_ordered(w, f"{op.mnemonic()} {op.n.value.data};", "", ()))


def _load(w: FunctionWriter, op: ptx.TensorLoadOp) -> None:
    _write(w, op, f"[$0], [$2, {{{_places(op, 3)}}}], [$1]", [op.dst, op.bar, op.map, *op.coords], op.multicast)


def _from_shared(w: FunctionWriter, op: ptx.TensorStoreOp | ptx.TensorReduceOp) -> None:
    _write(w, op, f"[$1, {{{_places(op, 2)}}}], [$0]", [op.src, op.map, *op.coords])


def _prefetch(w: FunctionWriter, op: ptx.TensorPrefetchOp) -> None:
    _write(w, op, f"[$0, {{{_places(op, 1)}}}]", [op.map, *op.coords])


def _places(op: ptx.TmaCopyOp, first: int) -> str:
    return ", ".join(f"${first + number}" for number in range(len(op.coords)))


def _write(
    w: FunctionWriter, op: ptx.TmaCopyOp, text: str, operands: list[SSAValue], mask: SSAValue | None = None
) -> None:
    """Writes an instruction with its operands, after which stand the mask of the blocks and the cache policy."""
    for optional in (mask, op.policy):
        if optional is not None:
            text += f", ${len(operands)}"
            operands.append(optional)
    letters = ",".join(make_constraint(operand.type) or "" for operand in operands)
    mnemonic = op.mnemonic_on(w.module.target) if isinstance(op, ptx.TensorLoadOp) else op.mnemonic()
    w.emit(call_ordered(w, f"{mnemonic} {text};", letters, operands))


def _cvta(w: FunctionWriter, op: ptx.CvtaTensorMapOp) -> None:
    w.define(op.result, f"addrspacecast {w.typed(op.ptr)} to {w.type(op.result)}")


def _copy_map(w: FunctionWriter, op: ptx.CopyTensorMapOp) -> None:
    """Loads and stores of 16 bytes, all loads first; the map is a constant parameter, or in memory."""
    letter = make_constraint(op.ptr.type) or ""
    space = GMEM.ptx if letter == "l" else SMEM.ptx
    offsets, names = range(0, ptx.MAP_BYTES, 16), [f"v{number}" for number in range(ptx.MAP_BYTES // 8)]
    pairs = [", ".join(names[offset // 8 :][:2]) for offset in offsets]
    loads = (f"ld.v2.b64 {{{pair}}}, [$0+{offset}];" for pair, offset in zip(pairs, offsets, strict=True))
    stores = (f"st.{space}.v2.b64 [$1+{offset}], {{{pair}}};" for pair, offset in zip(pairs, offsets, strict=True))
    lines = ("{", f".reg .b64 {', '.join(names)};", *loads, *stores, "}")
    w.emit(call_ordered(w, lines, f"l,{letter}", op.operands))


def _load_map_word(w: FunctionWriter, op: ptx.LoadTensorMapOp) -> None:
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


PTX_ASYNC: tuple[tuple[type[Operation], Rule], ...] = (
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
    (ptx.BulkLoadOp, ordered("[$0], [$1], $2, [$3]")),
    (ptx.BulkSendOp, ordered("[$0], [$1], $2, [$3]")),
    (ptx.BulkStoreOp, ordered("[$0], [$1], $2")),
    (ptx.BulkReduceOp, ordered("[$0], [$1], $2")),
    (ptx.BulkPrefetchOp, ordered("[$0], $1")),
    (ptx.BulkCommitGroupOp, ordered()),
    rule(ptx.BulkWaitGroupOp, _wait_group),
    (ptx.FenceProxyAsyncOp, ordered()),
    rule(ptx.TensorLoadOp, _load),
    rule(ptx.TensorStoreOp, _from_shared),
    rule(ptx.TensorReduceOp, _from_shared),
    rule(ptx.TensorPrefetchOp, _prefetch),
    (ptx.PrefetchTensorMapOp, ordered("[$0]")),
    rule(ptx.CvtaTensorMapOp, _cvta),
    rule(ptx.CopyTensorMapOp, _copy_map),
    rule(ptx.LoadTensorMapOp, _load_map_word),
    rule(ptx.TensorMapReplaceOp, _replace),
    (ptx.FenceTensorMapReleaseOp, ordered()),
    (ptx.FenceTensorMapAcquireOp, ordered(f"[$0], {ptx.MAP_BYTES}")),
    (ptx.TensorMapCpFenceOp, ordered(f"[$0], [$1], {ptx.MAP_BYTES}", convergent=True)),
)
