# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`ptx`: atomic operations and fences, inline assembly of the instruction that the operation names."""

from xdsl.ir import Operation, SSAValue

from ...dialects import ptx
from ...dialects.ptx.base import split_vector
from .inline_assembly import effect, from_register, in_register, ordered, register
from .writer import FunctionWriter, Rule, call_rule, rule


def _changing(w: FunctionWriter, op: ptx.AtomOp | ptx.AtomCasOp) -> None:
    values = [op.value] if isinstance(op, ptx.AtomOp) else [op.compare, op.value]
    places = ", ".join(f"${index + 2}" for index in range(len(values)))
    with_result(w, op, op.ptr, f"{op.mnemonic()} $0, [$1], {places};", values)


def with_result(w: FunctionWriter, op: Operation, ptr: SSAValue, text: str, values: list[SSAValue]) -> None:
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
    with_result(w, op, op.ptr, f"{op.mnemonic()} $0, [$1];", [])


def without_result(w: FunctionWriter, op: ptx.StoreReleaseOp | ptx.MultimemRedOp | ptx.MultimemStOp) -> None:
    """Writes an instruction on an address and the value in its register."""
    letters = [register(value.type, op)[1] for value in (op.ptr, op.value)]
    w.emit(effect(f"{op.mnemonic()} [$0], $1;", letters, [w.typed(op.ptr), in_register(w, op.value, op)]))


PTX_ATOMIC: tuple[tuple[type[Operation], Rule], ...] = (
    rule(ptx.AtomOp, _changing),
    rule(ptx.AtomCasOp, _changing),
    rule(ptx.RedOp, _red),
    rule(ptx.LoadAcquireOp, _load),
    rule(ptx.StoreReleaseOp, without_result),
    (ptx.FenceOp, ordered()),
    (ptx.NanosleepOp, call_rule("@llvm.nvvm.nanosleep")),
)
