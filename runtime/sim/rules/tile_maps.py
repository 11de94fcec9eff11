# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rules for the tile dialect's computing on elements: coordinate by coordinate, in colexicographic order."""

from collections.abc import Callable, Sequence

from xdsl.ir import Operation

from ....dialects import tile
from ....dialects.cute.values import unknowns
from ....layout.algebra.coordinates import crd2idx
from ....layout.algebra.core import size
from ...arrays.storage import distances
from ..events import Step, Suspending, Suspension
from ..faults import site_of
from ..memory.ragged_guard import check_all
from ..memory.tensors import check_count, checked_index, in_64_bits, port, tensor_layout, tensor_value
from ..translate import Rules, Translator
from ..values import TensorValue, Value
from ..warp import Warp
from .ptx_memory import from_bytes, to_bytes

Places = Callable[[Warp, TensorValue], Sequence[Value]]
"""The index of each element of a tensor, an integer or one per lane."""


def _places(op: Operation, type: tile.TensorType) -> Places:
    """How the elements of tensors of a type are found; by strides of run time, whenever the operation is executed."""
    layout, site = type.plain_layout, site_of(op)
    check_count(op, layout)
    if not unknowns(layout):
        known: Sequence[Value] = distances(layout).tolist()
        return lambda warp, tensor: known
    count = int(size(layout))

    def places(warp: Warp, tensor: TensorValue) -> Sequence[Value]:
        given = tensor_layout(type, tensor)
        with in_64_bits(warp, site):
            return [checked_index(crd2idx(number, given.shape, given.stride)) for number in range(count)]

    return places


def _check_inside(op: Operation, warp: Warp, value: Value) -> TensorValue:
    """A tensor without elements beyond the end of the tensor that a ragged view divides."""
    tensor = tensor_value(value)
    if tensor.guard is not None:
        check_all(warp, op, tensor.guard, None)
    return tensor


def _fill(op: tile.FillOp, t: Translator) -> Step:
    tensor, value, kind = t.slot(op.tensor), t.slot(op.value), t.kind(op.value)
    places, target, site = _places(op, op.tensor.type), port(op, op.tensor.type, "store", t), site_of(op)
    count = int(size(op.tensor.type.plain_layout))

    def step(warp: Warp) -> None:
        registers = warp.registers
        warp.launch.spend(count * warp.warps, site)
        destination, content = _check_inside(op, warp, registers[tensor]), to_bytes(warp, registers[value], kind)
        for index in places(warp, destination):
            target.store(warp, destination, index, content)

    return step


def _map(op: tile.MapOp, t: Translator) -> Suspending:
    destination, *sources = op.types
    block = op.body.block
    target, to, places = port(op, destination, "store", t), t.slot(op.dst), _places(op, destination)
    reads = list(zip(op.srcs, sources, strict=True))
    if op.reads_old:
        reads.append((op.dst, destination))
    inputs = [
        (t.slot(value), t.slot(argument), t.kind(argument), port(op, type, "load", t), _places(op, type))
        for (value, type), argument in zip(reads, block.args, strict=True)
    ]
    body = t.block(block)
    result, kind = body.results[0], t.kind(op.body.block.last_op.operands[0])  # pyright: ignore[reportOptionalMemberAccess]

    def run(warp: Warp) -> Suspension:
        registers = warp.registers
        given = [_check_inside(op, warp, registers[tensor]) for tensor, *_ in inputs]
        destination = _check_inside(op, warp, registers[to])
        elements = zip(*(at(warp, tensor) for (*_, at), tensor in zip(inputs, given, strict=True)), strict=True)
        indices = places(warp, destination)
        for index, where in zip(indices, elements if inputs else ((),) * len(indices), strict=True):
            for (_, slot, element, source, _), tensor, place in zip(inputs, given, where, strict=True):
                registers[slot] = from_bytes(warp, source.load(warp, tensor, place), element)
            yield from body.enter(warp)
            target.store(warp, destination, index, to_bytes(warp, registers[result], kind))

    return Suspending(run)


TILE_MAPS: Rules = {tile.FillOp: _fill, tile.MapOp: _map}
