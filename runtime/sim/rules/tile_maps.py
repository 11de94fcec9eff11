# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rules for the tile dialect's computing on elements: coordinate by coordinate, in colexicographic order."""

from ....dialects import tile
from ...tensor import distances
from ..faults import site_of
from ..tensors import check_count, port, tensor_value
from ..translate import Rules, Step, Suspending, Suspension, Translator
from ..warp import Warp
from .ptx_memory import from_bytes, to_bytes


def _fill(op: tile.FillOp, t: Translator) -> Step:
    tensor, value, kind = t.slot(op.tensor), t.slot(op.value), t.kind(op.value)
    layout = op.tensor_type.plain_layout
    check_count(op, layout)
    indices, target, site = distances(layout).tolist(), port(op, op.tensor_type, "store", t), site_of(op)

    def step(warp: Warp) -> None:
        registers = warp.registers
        warp.launch.spend(len(indices), site)
        there, content = tensor_value(registers[tensor]), to_bytes(warp, registers[value], kind)
        for index in indices:
            target.store(warp, there, index, content)

    return step


def _map(op: tile.MapOp, t: Translator) -> Suspending:
    destination, *sources = op.types
    block = op.body.block
    check_count(op, destination.plain_layout)
    target, to = port(op, destination, "store", t), t.slot(op.dst)
    indices = distances(destination.plain_layout).tolist()
    reads = list(zip(op.srcs, sources, strict=True))
    if op.reads_old:
        reads.append((op.dst, destination))
    inputs = [
        (
            t.slot(value),
            t.slot(argument),
            t.kind(argument),
            port(op, type, "load", t),
            distances(type.plain_layout).tolist(),
        )
        for (value, type), argument in zip(reads, block.args, strict=True)
    ]
    body = t.block(block)
    result, kind = body.results[0], t.kind(op.body.block.last_op.operands[0])  # pyright: ignore[reportOptionalMemberAccess]

    def run(warp: Warp) -> Suspension:
        registers = warp.registers
        for number, index in enumerate(indices):
            for tensor, slot, element, source, places in inputs:
                content = source.load(warp, tensor_value(registers[tensor]), places[number])
                registers[slot] = from_bytes(warp, content, element)
            yield from body.run(warp)
            target.store(warp, tensor_value(registers[to]), index, to_bytes(warp, registers[result], kind))

    return Suspending(run)


TILE_MAPS: Rules = {tile.FillOp: _fill, tile.MapOp: _map}
