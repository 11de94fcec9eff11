# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rules for LLVM structures, which hold lowered `cute` values. In registers they are tuples."""

from xdsl.dialects import llvm, ub
from xdsl.ir import Attribute

from ....base.errors import Code as ErrorCode
from ..faults import SimulationError, site_of
from ..translate import Rules, Step, Translator
from ..values.values import Kind, Value, kind_of, varies
from ..warp import Warp


def _poison(op: ub.PoisonOp, t: Translator) -> None:
    t.constant(op.result, _make_undefined(op, op.result.type))


def _make_undefined(op: ub.PoisonOp, type: Attribute) -> Value:
    """A value whose fields are unusable until they are set."""
    if isinstance(type, llvm.LLVMStructType):
        return tuple([_make_undefined(op, part) for part in type.types])
    kind = kind_of(type)
    if kind is None:
        raise SimulationError(
            ErrorCode.SIM_UNSUPPORTED, f"the simulator has no values of type {type}", site=site_of(op)
        )
    return 0 if not kind.is_float and kind.bits > 1 and kind.count is None else None


def _path(op: llvm.InsertValueOp | llvm.ExtractValueOp) -> tuple[int, ...]:
    return tuple(map(int, op.position.get_values()))


def _insert(op: llvm.InsertValueOp, t: Translator) -> Step:
    container, value, result, path = t.slot(op.container), t.slot(op.value), t.slot(op.res), _path(op)

    def step(warp: Warp) -> None:
        registers = warp.registers
        registers[result] = _with(registers[container], path, registers[value])

    return step


def _with(struct: tuple[Value, ...], path: tuple[int, ...], value: Value) -> Value:
    if not path:
        return value
    at = path[0]
    return (*struct[:at], _with(struct[at], path[1:], value), *struct[at + 1 :])


def _extract(op: llvm.ExtractValueOp, t: Translator) -> Step:
    container, result, path = t.slot(op.container), t.slot(op.res), _path(op)
    kind: Kind | None = kind_of(op.res.type)

    def step(warp: Warp) -> None:
        value = warp.registers[container]
        for index in path:
            value = value[index]
        # where lanes took different branches, an integer field was made 64 bits wide
        warp.registers[result] = value.astype(kind.dtype) if kind is not None and varies(value) else value

    return step


STRUCTS: Rules = {ub.PoisonOp: _poison, llvm.InsertValueOp: _insert, llvm.ExtractValueOp: _extract}
