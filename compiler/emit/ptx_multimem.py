# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`ptx`: accesses to multicast memory, inline assembly of the instruction that the operation names."""

from xdsl.dialects.builtin import f32
from xdsl.ir import Attribute, Operation

from ...dialects import ptx
from ...dialects.ptx.base import split_vector
from .inline_assembly import effect, register
from .ptx_atomic import with_result, without_result
from .writer import FunctionWriter, Rule, rule


def _registers(type: Attribute) -> tuple[str, str, int]:
    """The LLVM type of the registers of a vector, their constraint, and how many there are: f32 or pairs of 16 bits."""
    (element, _), (count, _) = split_vector(type), ptx.access_registers(type)
    return ("float", "f", count) if element == f32 else ("i32", "r", count)


def _places(first: int, count: int) -> str:
    return f"{{{', '.join(f'${first + index}' for index in range(count))}}}"


def _ld_reduce(w: FunctionWriter, op: ptx.MultimemLdReduceOp) -> None:
    kind, letter, count = _registers(op.result.type)
    if count == 1:
        with_result(w, op, op.ptr, f"{op.mnemonic()} $0, [$1];", [])
        return
    text = f"{op.mnemonic()} {_places(0, count)}, [${count}];"
    letters = [*[f"={letter}"] * count, register(op.ptr.type, op)[1]]
    struct, whole = f"{{ {', '.join([kind] * count)} }}", f"<{count} x {kind}>"
    loaded, moved = w.temp(effect(text, letters, [w.typed(op.ptr)], struct)), "poison"
    for index in range(count):
        part = w.temp(f"extractvalue {struct} {loaded}, {index}")
        moved = w.temp(f"insertelement {whole} {moved}, {kind} {part}, i32 {index}")
    given = w.type(op.result)
    w.bind(op.result, moved if whole == given else w.temp(f"bitcast {whole} {moved} to {given}"))


def _st(w: FunctionWriter, op: ptx.MultimemStOp) -> None:
    kind, letter, count = _registers(op.value.type)
    if count == 1:
        without_result(w, op)
        return
    whole = f"<{count} x {kind}>"
    moved = w.ref(op.value)
    if whole != w.type(op.value):
        moved = w.temp(f"bitcast {w.typed(op.value)} to {whole}")
    given = [f"{kind} {w.temp(f'extractelement {whole} {moved}, i32 {index}')}" for index in range(count)]
    letters = [register(op.ptr.type, op)[1], *[letter] * count]
    w.emit(effect(f"{op.mnemonic()} [$0], {_places(1, count)};", letters, [w.typed(op.ptr), *given]))


PTX_MULTIMEM: tuple[tuple[type[Operation], Rule], ...] = (
    rule(ptx.MultimemLdReduceOp, _ld_reduce),
    rule(ptx.MultimemStOp, _st),
    rule(ptx.MultimemRedOp, without_result),
)
