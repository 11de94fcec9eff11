# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`ptx`: accesses to multicast memory, inline assembly of the instruction that the operation names."""

from typing import cast

from xdsl.dialects.builtin import VectorType, f32
from xdsl.ir import Attribute, Operation

from ...dialects import ptx
from ...dialects.ptx.base import split_vector
from .inline_assembly import effect, from_register, in_register, register
from .writer import FunctionWriter, Rule, rule


def _registers(type: Attribute, op: Operation) -> tuple[str, str, int]:
    """The LLVM type of the registers of a value, their constraint, and how many there are: f32 or pairs of 16 bits."""
    if isinstance(type, VectorType):
        vector = cast("Attribute", type)
        (element, _), (count, _) = split_vector(vector), ptx.access_registers(vector)
        return ("float", "f", count) if element == f32 else ("i32", "r", count)
    return *register(type, op), 1


def _places(first: int, count: int) -> str:
    names = ", ".join(f"${first + index}" for index in range(count))
    return names if count == 1 else f"{{{names}}}"


def _ld_reduce(w: FunctionWriter, op: ptx.MultimemLdReduceOp) -> None:
    kind, letter, count = _registers(op.result.type, op)
    text = f"{op.mnemonic()} {_places(0, count)}, [${count}];"
    letters = [*[f"={letter}"] * count, register(op.ptr.type, op)[1]]
    if not isinstance(op.result.type, VectorType):
        from_register(w, op.result, w.temp(effect(text, letters, [w.typed(op.ptr)], kind)), op)
        return
    if count == 1:
        moved, whole = w.temp(effect(text, letters, [w.typed(op.ptr)], kind)), kind
    else:
        struct = f"{{ {', '.join([kind] * count)} }}"
        loaded, moved, whole = w.temp(effect(text, letters, [w.typed(op.ptr)], struct)), "poison", f"<{count} x {kind}>"
        for index in range(count):
            part = w.temp(f"extractvalue {struct} {loaded}, {index}")
            moved = w.temp(f"insertelement {whole} {moved}, {kind} {part}, i32 {index}")
    given = w.type(op.result)
    w.bind(op.result, moved if whole == given else w.temp(f"bitcast {whole} {moved} to {given}"))


def _st(w: FunctionWriter, op: ptx.MultimemStOp) -> None:
    kind, letter, count = _registers(op.value.type, op)
    if isinstance(op.value.type, VectorType):
        whole = f"<{count} x {kind}>"
        moved = w.ref(op.value)
        if whole != w.type(op.value):
            moved = w.temp(f"bitcast {w.typed(op.value)} to {whole}")
        given = [f"{kind} {w.temp(f'extractelement {whole} {moved}, i32 {index}')}" for index in range(count)]
    else:
        given = [in_register(w, op.value, op)]
    letters = [register(op.ptr.type, op)[1], *[letter] * count]
    w.emit(effect(f"{op.mnemonic()} [$0], {_places(1, count)};", letters, [w.typed(op.ptr), *given]))


def _red(w: FunctionWriter, op: ptx.MultimemRedOp) -> None:
    letters = [register(value.type, op)[1] for value in (op.ptr, op.value)]
    w.emit(effect(f"{op.mnemonic()} [$0], $1;", letters, [w.typed(op.ptr), in_register(w, op.value, op)]))


PTX_MULTIMEM: tuple[tuple[type[Operation], Rule], ...] = (
    rule(ptx.MultimemLdReduceOp, _ld_reduce),
    rule(ptx.MultimemStOp, _st),
    rule(ptx.MultimemRedOp, _red),
)
