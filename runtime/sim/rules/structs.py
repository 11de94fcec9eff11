# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rules for LLVM structures, which hold lowered `cute` values. In registers they are tuples."""

from functools import partial

import numpy as np
from xdsl.dialects import llvm, ub
from xdsl.ir import Attribute

from ....base.errors import Code
from ....dialects.kernel import kernel_of
from ..events import Step
from ..faults import SimulationError, site_of
from ..translate import Rules, Translator
from ..values import Value, kind_of, varies
from ..warp import Warp


def _poison(op: ub.PoisonOp, t: Translator) -> Step | None:
    """An undefined value: a number is as in unwritten memory, anything else is a value that nothing can use."""
    kind = kind_of(op.result.type)
    if kind is None or kind.count is not None or kernel_of(op) is None:
        t.constant(op.result, _make_undefined(op, op.result.type))
        return None
    result, site, dtype, is_bit = t.slot(op.result), site_of(op), kind.dtype, kind.bits == 1

    def step(warp: Warp) -> None:
        content = np.full(warp.lanes * dtype.itemsize, warp.undefined(site, 0, "a register"), np.uint8)
        warp.registers[result] = content.astype(bool) if is_bit else content.view(dtype)

    return step


def _make_undefined(op: ub.PoisonOp, type: Attribute) -> Value:
    """A value whose fields are unusable until they are set."""
    if isinstance(type, llvm.LLVMStructType):
        return tuple([_make_undefined(op, part) for part in type.types])
    kind = kind_of(type)
    if kind is None:
        raise SimulationError(Code.SIM_UNSUPPORTED, f"the simulator has no values of type {type}", site=site_of(op))
    return 0 if not kind.is_float and kind.bits > 1 and kind.count is None else None


def _path(op: llvm.InsertValueOp | llvm.ExtractValueOp) -> tuple[int, ...]:
    return tuple(map(int, op.position.get_values()))


def _insert(op: llvm.InsertValueOp, t: Translator) -> Step:
    return t.compute(op.res, partial(_with, _path(op)), op.container, op.value)


def _with(path: tuple[int, ...], struct: tuple[Value, ...], value: Value) -> Value:
    if not path:
        return value
    at = path[0]
    return (*struct[:at], _with(path[1:], struct[at], value), *struct[at + 1 :])


def _extract(op: llvm.ExtractValueOp, t: Translator) -> Step:
    path, kind = _path(op), kind_of(op.res.type)

    def field(value: Value) -> Value:
        for index in path:
            value = value[index]
        # where lanes took different branches, an integer field was made 64 bits wide
        return value.astype(kind.dtype) if kind is not None and varies(value) else value

    return t.compute(op.res, field, op.container)


STRUCTS: Rules = {ub.PoisonOp: _poison, llvm.InsertValueOp: _insert, llvm.ExtractValueOp: _extract}
