# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`ptx`: atomic operations and fences, inline assembly of the instruction that the operation names."""

from xdsl.ir import Operation, SSAValue

from ...dialects import ptx
from ...dialects.ptx.types import split_vector
from .assembly import from_register, in_register, register
from .writer import FunctionWriter, Rule, rule


def _changing(w: FunctionWriter, op: ptx.AtomOp | ptx.AtomCasOp) -> None:
    values = [op.value] if isinstance(op, ptx.AtomOp) else [op.compare, op.value]
    places = ", ".join(f"${index + 2}" for index in range(len(values)))
    _with_result(w, op, op.ptr, f"{op.mnemonic()} $0, [$1], {places};", values)


def _with_result(w: FunctionWriter, op: Operation, ptr: SSAValue, text: str, values: list[SSAValue]) -> None:
    (result,) = op.results
    type, constraint = register(result.type, op)
    constraints = ",".join([f"={constraint}", *(register(each.type, op)[1] for each in (ptr, *values)), "~{memory}"])
    given = ", ".join([w.typed(ptr), *(in_register(w, value, op) for value in values)])
    from_register(w, result, w.temp(f'call {type} asm sideeffect "{text}", "{constraints}"({given})'), op)


def _red(w: FunctionWriter, op: ptx.RedOp) -> None:
    _, space = register(op.ptr.type, op)
    if op.mnemonic().endswith(("v2.f32", "v4.f32")):
        _, count = split_vector(op.value.type)
        constraints, places = ["f"] * count, "{" + ", ".join(f"${index + 1}" for index in range(count)) + "}"
        parts = [w.temp(f"extractelement {w.typed(op.value)}, i32 {index}") for index in range(count)]
        given = [f"float {part}" for part in parts]
    else:
        constraints, places = [register(op.value.type, op)[1]], "$1"
        given = [in_register(w, op.value, op)]
    listed = ",".join([space, *constraints, "~{memory}"])
    operands = ", ".join([w.typed(op.ptr), *given])
    w.emit(f'call void asm sideeffect "{op.mnemonic()} [$0], {places};", "{listed}"({operands})')


def _load(w: FunctionWriter, op: ptx.LoadAcquireOp) -> None:
    _with_result(w, op, op.ptr, f"{op.mnemonic()} $0, [$1];", [])


def _store(w: FunctionWriter, op: ptx.StoreReleaseOp) -> None:
    constraints = ",".join([*(register(each.type, op)[1] for each in (op.ptr, op.value)), "~{memory}"])
    given = f"{w.typed(op.ptr)}, {in_register(w, op.value, op)}"
    w.emit(f'call void asm sideeffect "{op.mnemonic()} [$0], $1;", "{constraints}"({given})')


def _fence(w: FunctionWriter, op: ptx.FenceOp) -> None:
    w.emit(f'call void asm sideeffect "{op.mnemonic()};", "~{{memory}}"()')


def _nanosleep(w: FunctionWriter, op: ptx.NanosleepOp) -> None:
    w.emit(f"call void @llvm.nvvm.nanosleep({w.typed(op.duration)})")


PTX_ATOMIC: tuple[tuple[type[Operation], Rule], ...] = (
    rule(ptx.AtomOp, _changing),
    rule(ptx.AtomCasOp, _changing),
    rule(ptx.RedOp, _red),
    rule(ptx.LoadAcquireOp, _load),
    rule(ptx.StoreReleaseOp, _store),
    rule(ptx.FenceOp, _fence),
    rule(ptx.NanosleepOp, _nanosleep),
)
