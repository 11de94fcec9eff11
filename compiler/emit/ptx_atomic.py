# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`ptx`: atomic operations, also on multicast addresses, and fences: inline assembly of the instruction that the
operation names.
"""

import re

from xdsl.dialects.builtin import f32, i32
from xdsl.ir import Attribute, Operation, SSAValue

from ...dialects import ptx
from ...dialects.ptx.atomic import WIDE
from ...dialects.ptx.base import split_vector
from .inline_assembly import effect, from_register, in_register, ordered, register
from .writer import FunctionWriter, Rule, call_rule, rule


def _wide(w: FunctionWriter, op: ptx.PtxOp, ptr: SSAValue, values: list[SSAValue], result: SSAValue | None) -> None:
    """Writes an instruction on an address and values of 128 bits, whose halves are in registers."""
    names, first = ["given", "other"][: len(values)], 0 if result is None else 2
    halves = [f"i64 {w.temp(f'extractelement {w.typed(value)}, i32 {half}')}" for value in values for half in range(2)]
    lines = ["{", f".reg .b128 old, {', '.join(('none', *names))};"]
    for index, name in enumerate(names):
        lines.append(f"mov.b128 {name}, {{${first + 1 + 2 * index}, ${first + 2 + 2 * index}}};")
    operands = ["old"] * (result is not None) + [f"[${first}]", *names]
    lines += [f"{op.mnemonic()} {', '.join(operands)};", *(["mov.b128 {$0, $1}, old;"] * (result is not None)), "}"]
    letters = ["=l"] * first + [register(ptr.type, op)[1], *["l"] * len(halves)]
    type = "{ i64, i64 }" if result is not None else "void"
    call = effect("\n\t".join(lines), letters, [w.typed(ptr), *halves], type)
    if result is None:
        w.emit(call)
        return
    loaded, whole = w.temp(call), "poison"
    for half in range(2):
        part = w.temp(f"extractvalue {type} {loaded}, {half}")
        whole = w.temp(f"insertelement {w.type(result)} {whole}, i64 {part}, i32 {half}")
    w.bind(result, whole)


def _changing(w: FunctionWriter, op: ptx.AtomOp | ptx.AtomCasOp) -> None:
    values = [op.value] if isinstance(op, ptx.AtomOp) else [op.compare, op.value]
    if op.value.type == WIDE:
        _wide(w, op, op.ptr, values, op.result)
        return
    if isinstance(op, ptx.AtomOp) and (parts := _parts(op.mnemonic(), op.value.type)) is not None:
        kind, letter, count = parts
        text = f"{op.mnemonic()} {_places(0, count)}, [${count}], {_places(count + 1, count)};"
        letters = [*[f"={letter}"] * count, register(op.ptr.type, op)[1], *[letter] * count]
        given = [w.typed(op.ptr), *_split(w, op.value, kind, count)]
        _join(w, op.result, effect(text, letters, given, _struct(kind, count)), kind, count)
        return
    places = ", ".join(f"${index + 2}" for index in range(len(values)))
    _with_result(w, op, op.ptr, f"{op.mnemonic()} $0, [$1], {places};", values)


def _with_result(w: FunctionWriter, op: Operation, ptr: SSAValue, text: str, values: list[SSAValue]) -> None:
    """Writes an instruction on an address and values, whose result comes in a register."""
    (result,) = op.results
    type, constraint = register(result.type, op)
    letters = [f"={constraint}", *(register(value.type, op)[1] for value in (ptr, *values))]
    given = [w.typed(ptr), *(in_register(w, value, op) for value in values)]
    from_register(w, result, w.temp(effect(text, letters, given, type)), op)


def _red(w: FunctionWriter, op: ptx.RedOp) -> None:
    _, space = register(op.ptr.type, op)
    if (parts := _parts(op.mnemonic(), op.value.type)) is not None:
        kind, letter, count = parts
        letters, places, given = [letter] * count, _places(1, count), _split(w, op.value, kind, count)
    else:
        letters, places = [register(op.value.type, op)[1]], "$1"
        given = [in_register(w, op.value, op)]
    w.emit(effect(f"{op.mnemonic()} [$0], {places};", [space, *letters], [w.typed(op.ptr), *given]))


def _load(w: FunctionWriter, op: ptx.LoadAcquireOp) -> None:
    if op.result.type == WIDE:
        _wide(w, op, op.ptr, [], op.result)
        return
    _loaded(w, op)


def _store(w: FunctionWriter, op: ptx.StoreReleaseOp) -> None:
    if op.value.type == WIDE:
        _wide(w, op, op.ptr, [op.value], None)
        return
    _stored(w, op)


def _without_result(w: FunctionWriter, op: ptx.StoreReleaseOp | ptx.MultimemRedOp | ptx.MultimemStOp) -> None:
    """Writes an instruction on an address and the value in its register."""
    letters = [register(value.type, op)[1] for value in (op.ptr, op.value)]
    w.emit(effect(f"{op.mnemonic()} [$0], $1;", letters, [w.typed(op.ptr), in_register(w, op.value, op)]))


def _parts(mnemonic: str, type: Attribute) -> tuple[str, str, int] | None:
    """The LLVM type of the registers of a vector that an instruction takes in braces, their constraint, and how many
    there are: 32 bits, pairs of 16 bits, or 16 bits each. None where it takes one register.
    """
    (element, count), name = split_vector(type), mnemonic.rpartition(".")[2]
    if not re.search(r"\.v[248]\.", mnemonic):
        return None
    if element == f32:
        return "float", "f", count
    if element == i32:
        return "i32", "r", count
    return ("i32", "r", count // 2) if name.endswith("x2") else ("i16", "h", count)


def _places(first: int, count: int) -> str:
    return f"{{{', '.join(f'${first + index}' for index in range(count))}}}"


def _struct(kind: str, count: int) -> str:
    return f"{{ {', '.join([kind] * count)} }}"


def _split(w: FunctionWriter, value: SSAValue, kind: str, count: int) -> list[str]:
    """The registers of a vector, each with its type."""
    whole, moved = f"<{count} x {kind}>", w.ref(value)
    if whole != w.type(value):
        moved = w.temp(f"bitcast {w.typed(value)} to {whole}")
    return [f"{kind} {w.temp(f'extractelement {whole} {moved}, i32 {index}')}" for index in range(count)]


def _join(w: FunctionWriter, result: SSAValue, call: str, kind: str, count: int) -> None:
    """Gives a vector the registers that a call returns."""
    loaded, whole, moved = w.temp(call), f"<{count} x {kind}>", "poison"
    for index in range(count):
        part = w.temp(f"extractvalue {_struct(kind, count)} {loaded}, {index}")
        moved = w.temp(f"insertelement {whole} {moved}, {kind} {part}, i32 {index}")
    given = w.type(result)
    w.bind(result, moved if whole == given else w.temp(f"bitcast {whole} {moved} to {given}"))


def _loaded(w: FunctionWriter, op: ptx.LoadAcquireOp | ptx.MultimemLdReduceOp) -> None:
    """Writes an instruction on an address, whose result comes in registers."""
    if (parts := _parts(op.mnemonic(), op.result.type)) is None:
        _with_result(w, op, op.ptr, f"{op.mnemonic()} $0, [$1];", [])
        return
    kind, letter, count = parts
    text = f"{op.mnemonic()} {_places(0, count)}, [${count}];"
    letters = [*[f"={letter}"] * count, register(op.ptr.type, op)[1]]
    _join(w, op.result, effect(text, letters, [w.typed(op.ptr)], _struct(kind, count)), kind, count)


def _stored(w: FunctionWriter, op: ptx.StoreReleaseOp | ptx.MultimemStOp | ptx.MultimemRedOp) -> None:
    """Writes an instruction on an address and the value in its registers."""
    if (parts := _parts(op.mnemonic(), op.value.type)) is None:
        _without_result(w, op)
        return
    kind, letter, count = parts
    letters = [register(op.ptr.type, op)[1], *[letter] * count]
    given = [w.typed(op.ptr), *_split(w, op.value, kind, count)]
    w.emit(effect(f"{op.mnemonic()} [$0], {_places(1, count)};", letters, given))


PTX_ATOMIC: tuple[tuple[type[Operation], Rule], ...] = (
    rule(ptx.AtomOp, _changing),
    rule(ptx.AtomCasOp, _changing),
    rule(ptx.RedOp, _red),
    rule(ptx.LoadAcquireOp, _load),
    rule(ptx.StoreReleaseOp, _store),
    (ptx.FenceOp, ordered()),
    (ptx.NanosleepOp, call_rule("@llvm.nvvm.nanosleep")),
    rule(ptx.MultimemLdReduceOp, _loaded),
    rule(ptx.MultimemStOp, _stored),
    rule(ptx.MultimemRedOp, _stored),
)
