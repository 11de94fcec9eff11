# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`ptx`: instructions of tcgen05.

Allocation, loads, stores, waits and fences are intrinsics. Those that the tensor core executes are inline assembly:
LLVM does not know that they read shared memory, and deletes stores before them if others follow; it also ends the
process on an intrinsic that a target lacks, and on loads and stores of two registers.
"""

from xdsl.ir import Operation, SSAValue

from ...dialects import ptx
from ...dialects.ptx.base import make_constraint
from .inline_assembly import effect
from .ptx_memory import write_descriptor
from .writer import FunctionWriter, Rule, rule

_POINTER = "ptr addrspace(6)"


def _cell(w: FunctionWriter, address: SSAValue) -> str:
    """An address of tensor memory as intrinsics take it."""
    return f"{_POINTER} {w.temp(f'inttoptr i32 {w.ref(address)} to {_POINTER}')}"


def _alloc(w: FunctionWriter, op: ptx.TensorAllocOp) -> None:
    name = f"@llvm.nvvm.tcgen05.alloc.shared.cg{op.blocks}"
    w.emit(f"call void {name}({w.typed(op.slot)}, {w.typed(op.columns)})")


def _dealloc(w: FunctionWriter, op: ptx.TensorDeallocOp) -> None:
    name = f"@llvm.nvvm.tcgen05.dealloc.cg{op.blocks}"
    w.emit(f"call void {name}({_cell(w, op.address)}, {w.typed(op.columns)})")


def _relinquish(w: FunctionWriter, op: ptx.TensorRelinquishOp) -> None:
    w.emit(f"call void @llvm.nvvm.tcgen05.relinq.alloc.permit.cg{op.blocks}()")


def _fence(w: FunctionWriter, op: ptx.TensorFenceOp) -> None:
    w.emit(f"call void @llvm.nvvm.tcgen05.fence.{op.when.data.replace('_', '.')}()")


def _wait(w: FunctionWriter, op: ptx.TensorWaitOp) -> None:
    w.emit(f"call void @llvm.nvvm.tcgen05.wait.{op.kind.data}()")


def _access(op: ptx.TensorLoadRegistersOp | ptx.TensorStoreRegistersOp) -> tuple[str, str, str]:
    """The end of the intrinsic's name, the operand of its offset, and its flag for packed halves."""
    offset = "" if op.offset is None else f", i64 {op.distance}"
    return f"{op.shape.data}.x{op.count}", offset, f"i1 {int(op.packs)}"


_ABORTING = 2
"""The registers of loads and stores that end LLVM 22's process as intrinsics, whatever their shape."""


def _load(w: FunctionWriter, op: ptx.TensorLoadRegistersOp) -> None:
    form, offset, flag = _access(op)
    count = op.registers
    if count == _ABORTING:
        _load_as_text(w, op, "")
        return
    type = "i32" if count == 1 else f"<{count} x i32>"
    value = f"call {type} @llvm.nvvm.tcgen05.ld.{form}({_cell(w, op.address)}{offset}, {flag})"
    if count > 1:
        w.define(op.result, value)
    else:
        w.define(op.result, f"insertelement {w.type(op.result)} poison, i32 {w.temp(value)}, i32 0")


def _store(w: FunctionWriter, op: ptx.TensorStoreRegistersOp) -> None:
    form, offset, flag = _access(op)
    value, count = w.typed(op.value), op.registers
    if count == _ABORTING:
        parts = [f"i32 {w.temp(f'extractelement {value}, i32 {index}')}" for index in range(count)]
        distance = "" if op.offset is None else f" {op.distance},"
        text = f"{op.mnemonic()} [$0],{distance} {{$1, $2}};"
        w.emit(f"{effect(text, ['r'] * 3, [w.typed(op.address), *parts])} convergent")
        return
    if count == 1:
        value = f"i32 {w.temp(f'extractelement {value}, i32 0')}"
    w.emit(f"call void @llvm.nvvm.tcgen05.st.{form}({_cell(w, op.address)}{offset}, {value}, {flag})")


def _load_as_text(
    w: FunctionWriter, op: ptx.TensorLoadRegistersOp | ptx.TensorLoadReducedOp, last: str
) -> tuple[str, str]:
    """A load as inline assembly, with a further result of the type `last`; its type and all results."""
    count, more = op.registers, [last] if last else []
    returned = f"{{ {', '.join([*['i32'] * count, *more])} }}"
    targets = "{" + ", ".join(f"${index}" for index in range(count)) + "}"
    places = [targets, *[f"${count}" for _ in more], f"[${count + len(more)}]"]
    places += [] if op.offset is None else [str(op.distance)]
    letters = [*["=r"] * count, *["=f" if last == "float" else "=r" for _ in more], "r"]
    text = f"{op.mnemonic()} {', '.join(places)};"
    whole = w.temp(f"{effect(text, letters, [w.typed(op.address)], returned)} convergent")
    vector = "poison"
    for index in range(count):
        part = w.temp(f"extractvalue {returned} {whole}, {index}")
        vector = w.temp(f"insertelement {w.type(op.result)} {vector}, i32 {part}, i32 {index}")
    w.bind(op.result, vector)
    return returned, whole


def _load_reduced(w: FunctionWriter, op: ptx.TensorLoadReducedOp) -> None:
    returned, whole = _load_as_text(w, op, "float" if op.kind.data.endswith("f32") else "i32")
    w.define(op.reduced, f"extractvalue {returned} {whole}, {op.registers}")


class _Text:
    """An instruction with its operands, as inline assembly."""

    def __init__(self, w: FunctionWriter) -> None:
        self.w = w
        self.letters, self.given = list[str](), list[str]()

    def place(self, value: SSAValue, in_brackets: bool = False) -> str:
        """The place of an operand."""
        self.letters.append("r" if self.w.type(value) == "i1" else make_constraint(value.type) or "")
        typed = self.w.typed(value)
        self.given.append(f"i32 {self.w.temp(f'zext {typed} to i32')}" if self.w.type(value) == "i1" else typed)
        text = f"${len(self.given) - 1}"
        return f"[{text}]" if in_brackets else text

    def write(self, op: ptx.PtxOp, places: list[str], predicate: str = "") -> None:
        """Writes the instruction."""
        lines = [f"{op.mnemonic()} {', '.join(places)};"]
        if predicate:
            lines = ["{", ".reg .pred p;", f"setp.ne.b32 p, {predicate}, 0;", *lines, "}"]
        self.w.emit(effect("\n\t".join(lines), self.letters, self.given))


def _mma(w: FunctionWriter, op: ptx.TensorMmaOp | ptx.TensorMmaWsOp | ptx.TensorMmaScaledOp) -> None:
    text = _Text(w)
    places = [text.place(op.d, True), text.place(op.a, op.a_in_tensor_memory), text.place(op.b)]
    if op.metadata is not None:
        places.append(text.place(op.metadata, True))
    places.append(text.place(op.idesc))
    if isinstance(op, ptx.TensorMmaScaledOp):
        places += [text.place(op.sfa, True), text.place(op.sfb, True)]
    if isinstance(op, ptx.TensorMmaOp) and op.mask:
        places.append(f"{{{', '.join(text.place(word) for word in op.mask)}}}")
    places.append("p")
    if isinstance(op, ptx.TensorMmaOp) and op.scale_d is not None:
        places.append(str(op.divisor))
    if isinstance(op, ptx.TensorMmaWsOp) and op.zero_columns is not None:
        places.append(text.place(op.zero_columns))
    text.write(op, places, text.place(op.accumulate))


def _copy(w: FunctionWriter, op: ptx.TmaCopySharedOp) -> None:
    text = _Text(w)
    text.write(op, [text.place(op.address, True), text.place(op.matrix)])


def _shift(w: FunctionWriter, op: ptx.TensorShiftOp) -> None:
    text = _Text(w)
    text.write(op, [text.place(op.address, True)])


def _commit(w: FunctionWriter, op: ptx.TensorCommitOp) -> None:
    text = _Text(w)
    places = [text.place(op.bar, True)]
    text.write(op, places if op.multicast is None else [*places, text.place(op.multicast)])


PTX_TCGEN05: tuple[tuple[type[Operation], Rule], ...] = (
    rule(ptx.TensorAllocOp, _alloc),
    rule(ptx.TensorDeallocOp, _dealloc),
    rule(ptx.TensorRelinquishOp, _relinquish),
    rule(ptx.TensorFenceOp, _fence),
    rule(ptx.TensorWaitOp, _wait),
    rule(ptx.TensorLoadRegistersOp, _load),
    rule(ptx.TensorStoreRegistersOp, _store),
    rule(ptx.TensorLoadReducedOp, _load_reduced),
    rule(ptx.TensorMmaOp, _mma),
    rule(ptx.TensorMmaWsOp, _mma),
    rule(ptx.TensorMmaScaledOp, _mma),
    rule(ptx.TmaCopySharedOp, _copy),
    rule(ptx.TensorShiftOp, _shift),
    rule(ptx.TensorCommitOp, _commit),
    rule(ptx.TensorDescriptorOp, write_descriptor),
)
