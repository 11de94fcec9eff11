# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rules for 1-D vectors: arrays (lanes, n), or (1, n) where all lanes hold the same."""

from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any

import numpy as np
from xdsl.dialects import vector
from xdsl.dialects.builtin import DYNAMIC_INDEX
from xdsl.ir import SSAValue

from ....base.errors import Code
from ..events import Step
from ..faults import SimulationError, Site, site_of
from ..translate import Rules, Translator
from ..values import Value, ValueKind, anywhere, varies
from ..warp import Warp
from .arithmetic import MAXIMUM, MAXIMUM_NUMBER, MINIMUM, MINIMUM_NUMBER, fma
from .casts import BITCAST


def _scalar(value: Value, kind: ValueKind) -> Value:
    """An element in the form that scalars have: uniform where it comes from a uniform vector."""
    if value.shape[0] > 1:
        return value
    element = value[0]
    if kind.is_float:
        return element
    return bool(element) if kind.bits == 1 else int(element)


def _column(value: Value, kind: ValueKind) -> Any:
    """A scalar as an array (lanes, 1) or (1, 1)."""
    return value[:, None] if varies(value) else np.array([[value]], kind.dtype)


def _position(op: vector.ExtractOp | vector.InsertOp, t: Translator) -> int | SSAValue:
    """The one index of an access to an element, static or not."""
    static = op.static_position.get_values()
    if len(static) != 1:
        raise SimulationError(Code.SIM_UNSUPPORTED, "only one element can be addressed", site=site_of(op))
    return op.dynamic_position[0] if static[0] == DYNAMIC_INDEX else static[0]


def _in_range(warp: Warp, site: Site, index: Value, count: int) -> None:
    bad = (index < 0) | (index >= count)
    if anywhere(bad):
        warp.fault_where(bad, Code.SIM_OUT_OF_BOUNDS, site, f"an index beyond the {count} elements of the vector")


def _extract(op: vector.ExtractOp, t: Translator) -> Step:
    source, result = t.slot(op.vector), t.slot(op.result)
    position, kind, site = _position(op, t), t.kind(op.vector), site_of(op)
    count = kind.count or 1
    if isinstance(position, int):

        def static(warp: Warp) -> None:
            warp.registers[result] = _scalar(warp.registers[source][:, position], kind)

        return static
    slot = t.slot(position)

    def dynamic(warp: Warp) -> None:
        index = warp.registers[slot]
        _in_range(warp, site, index, count)
        index = np.clip(np.atleast_1d(index), 0, count - 1)
        values, columns = np.broadcast_arrays(warp.registers[source], index[:, None])
        warp.registers[result] = _scalar(np.take_along_axis(values, columns[:, :1], axis=1)[:, 0], kind)

    return dynamic


def _insert(op: vector.InsertOp, t: Translator) -> Step:
    element, source, result = t.slot(op.source), t.slot(op.dest), t.slot(op.result)
    position, kind, site = _position(op, t), t.kind(op.dest), site_of(op)
    count = kind.count or 1
    slot = -1 if isinstance(position, int) else t.slot(position)

    def step(warp: Warp) -> None:
        registers = warp.registers
        index = position if isinstance(position, int) else registers[slot]
        if slot >= 0:
            _in_range(warp, site, index, count)
        chosen = np.arange(count) == np.atleast_1d(index)[:, None]
        registers[result] = np.where(chosen, _column(registers[element], kind), registers[source])

    return step


def _broadcast(op: vector.BroadcastOp, t: Translator) -> Step:
    kind, before = t.kind(op.vector), t.kind(op.source)
    count = kind.count or 1

    def repeated(value: Value) -> Value:
        column = value if before.count is not None else _column(value, kind)
        return np.repeat(column, count // column.shape[1], axis=1)

    return t.compute(op.vector, repeated, op.source)


def _shuffle(op: vector.ShuffleOp, t: Translator) -> Step:
    t.kind(op.result)
    order = list(op.mask.get_values())

    def shuffled(a: Value, b: Value) -> Value:
        lanes = max(a.shape[0], b.shape[0])
        both = [np.broadcast_to(x, (lanes, x.shape[1])) for x in (a, b)]
        return np.concatenate(both, axis=1)[:, order]

    return t.compute(op.result, shuffled, op.v1, op.v2)


_COMBINE: Mapping[str, Callable[[Any, Any], Any]] = {
    "add": np.add, "mul": np.multiply, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
    "minsi": np.minimum, "maxsi": np.maximum, "minui": np.minimum, "maxui": np.maximum,
    "minnumf": MINIMUM_NUMBER, "maxnumf": MAXIMUM_NUMBER, "minimumf": MINIMUM, "maximumf": MAXIMUM,
}  # fmt: skip


def _reduction(op: vector.ReductionOp, t: Translator) -> Step:
    kind, element = t.kind(op.vector), t.kind(op.dest)
    name = str(op.kind.data)
    combine = _COMBINE[name]
    unsigned = name.endswith("ui") and kind.bits > 1

    def reduced(given: Value, *start: Value) -> Value:
        values = np.ascontiguousarray(given)
        columns = [*(_column(value, element)[:, 0] for value in start), *values.T]
        if unsigned:
            columns = [np.ascontiguousarray(c).view(kind.unsigned) for c in columns]
        return _scalar(reduce(combine, columns).view(element.dtype), element)

    return t.compute(op.dest, reduced, *op.operands)


VECTOR: Rules = {
    vector.ExtractOp: _extract,
    vector.InsertOp: _insert,
    vector.BroadcastOp: _broadcast,
    vector.ShuffleOp: _shuffle,
    vector.FMAOp: fma,
    vector.ReductionOp: _reduction,
    vector.BitcastOp: BITCAST,
}
