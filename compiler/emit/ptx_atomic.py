# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`ptx`: atomic operations, also on multicast addresses, and fences: inline assembly of the instruction that the
operation names.
"""

from xdsl.dialects.builtin import f32
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
    if op.mnemonic().endswith(("v2.f32", "v4.f32")):
        _, count = split_vector(op.value.type)
        letters, places = ["f"] * count, "{" + ", ".join(f"${index + 1}" for index in range(count)) + "}"
        parts = [w.temp(f"extractelement {w.typed(op.value)}, i32 {index}") for index in range(count)]
        given = [f"float {part}" for part in parts]
    else:
        letters, places = [register(op.value.type, op)[1]], "$1"
        given = [in_register(w, op.value, op)]
    w.emit(effect(f"{op.mnemonic()} [$0], {places};", [space, *letters], [w.typed(op.ptr), *given]))


def _load(w: FunctionWriter, op: ptx.LoadAcquireOp) -> None:
    if op.result.type == WIDE:
        _wide(w, op, op.ptr, [], op.result)
        return
    _with_result(w, op, op.ptr, f"{op.mnemonic()} $0, [$1];", [])


def _without_result(w: FunctionWriter, op: ptx.StoreReleaseOp | ptx.MultimemRedOp | ptx.MultimemStOp) -> None:
    """Writes an instruction on an address and the value in its register."""
    if isinstance(op, ptx.StoreReleaseOp) and op.value.type == WIDE:
        _wide(w, op, op.ptr, [op.value], None)
        return
    letters = [register(value.type, op)[1] for value in (op.ptr, op.value)]
    w.emit(effect(f"{op.mnemonic()} [$0], $1;", letters, [w.typed(op.ptr), in_register(w, op.value, op)]))


def _registers(type: Attribute) -> tuple[str, str, int]:
    """The LLVM type of the registers of a vector, their constraint, and how many there are: f32 or pairs of 16 bits."""
    (element, _), (count, _) = split_vector(type), ptx.access_registers(type)
    return ("float", "f", count) if element == f32 else ("i32", "r", count)


def _places(first: int, count: int) -> str:
    return f"{{{', '.join(f'${first + index}' for index in range(count))}}}"


def _ld_reduce(w: FunctionWriter, op: ptx.MultimemLdReduceOp) -> None:
    kind, letter, count = _registers(op.result.type)
    if count == 1:
        _with_result(w, op, op.ptr, f"{op.mnemonic()} $0, [$1];", [])
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
        _without_result(w, op)
        return
    whole = f"<{count} x {kind}>"
    moved = w.ref(op.value)
    if whole != w.type(op.value):
        moved = w.temp(f"bitcast {w.typed(op.value)} to {whole}")
    given = [f"{kind} {w.temp(f'extractelement {whole} {moved}, i32 {index}')}" for index in range(count)]
    letters = [register(op.ptr.type, op)[1], *[letter] * count]
    w.emit(effect(f"{op.mnemonic()} [$0], {_places(1, count)};", letters, [w.typed(op.ptr), *given]))


PTX_ATOMIC: tuple[tuple[type[Operation], Rule], ...] = (
    rule(ptx.AtomOp, _changing),
    rule(ptx.AtomCasOp, _changing),
    rule(ptx.RedOp, _red),
    rule(ptx.LoadAcquireOp, _load),
    rule(ptx.StoreReleaseOp, _without_result),
    (ptx.FenceOp, ordered()),
    (ptx.NanosleepOp, call_rule("@llvm.nvvm.nanosleep")),
    rule(ptx.MultimemLdReduceOp, _ld_reduce),
    rule(ptx.MultimemStOp, _st),
    rule(ptx.MultimemRedOp, _without_result),
)
