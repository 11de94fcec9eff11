# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rules for the tile dialect's allocations, single elements and printing."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from ....base.errors import Code
from ....base.spaces import Allocation
from ....dialects import tile
from ....dialects.tile.assembly import fill_coordinate, unwrap
from ....dialects.tile.types import elements_in_print_order, tensor_header
from ....layout.algebra.coordinates import crd2idx, fixed_modes
from ....layout.algebra.core import size
from ..events import Step
from ..faults import Site, site_of
from ..memory.arena import NAMED
from ..memory.provenance import HINT, element_at, fragment_name, name_of, name_of_view, sharing_at
from ..memory.ragged_guard import check_element
from ..memory.tensors import check_count, checked_index, in_64_bits, port, tensor_layout, tensor_value
from ..ordering.cluster import map_to_rank
from ..preparation import static_offset
from ..translate import Rules, Translator
from ..values import TensorValue, Value, ValueKind, anywhere, kind_of, memoise, merge, varies
from ..values.scalars import actual
from ..warp import Warp
from .ptx_memory import from_bytes, to_bytes


def _alloc(op: tile.AllocOp | tile.FragmentOp, t: Translator) -> Step | None:
    type = op.result.type
    if isinstance(op, tile.FragmentOp) and op.described is not None:
        return t.compute(op.result, lambda part: part, op.described)  # the instruction reads it where it is
    if isinstance(op, tile.FragmentOp) and op.address is not None:
        return t.compute(op.result, TensorValue, op.address)
    start = static_offset(type)
    if type.space.data.allocation is Allocation.STATIC:
        name = op.result.name_hint
        called = "a tensor in shared memory" if name is None else f"{NAMED}%{name}"
        t.constant(
            op.result, TensorValue(t.shared(type.bytes, type.align.data, called, partial(sharing_at, type)), start)
        )
        return None
    allocation = t.local(type.bytes, fragment_name(op.result.name_hint), partial(element_at, type))
    local = t.spaces.local
    result, value = t.slot(op.result), TensorValue(allocation.start, start)

    def step(warp: Warp) -> None:
        warp.registers[result] = value
        local.define(warp, allocation)

    return step


def _alias(op: tile.AliasOp, t: Translator) -> Step:
    offset, start = op.offset.value.data, static_offset(op.result.type)
    return t.compute(op.result, lambda source: TensorValue(tensor_value(source).address + offset, start), op.source)


def _choose(op: tile.ChooseOp, t: Translator) -> Step:
    index, sources, result, site = t.slot(op.index), t.slots(op.sources), t.slot(op.result), site_of(op)
    message = f"chooses a tensor by a number that is out of range for {len(sources)} tensors"

    def step(warp: Warp) -> None:
        registers = warp.registers
        number, tensors = registers[index], [tensor_value(registers[slot]) for slot in sources]
        warp.fault_where((number < 0) | (number >= len(sources)), Code.SIM_OUT_OF_BOUNDS, site, message)
        if not varies(number):
            registers[result] = tensors[number]
            return
        chosen = tensors[-1]
        for other, tensor in enumerate(tensors[:-1]):
            chosen = merge(number == other, tensor, chosen, None)
        registers[result] = chosen

    return step


def _tensor_at(op: tile.TensorAtOp, t: Translator) -> Step:
    start = static_offset(op.result.type)
    return t.compute(op.result, lambda address: TensorValue(address, start), op.ptr)


def _peer(op: tile.PeerOp, t: Translator) -> Step:
    t.launch.leave_lockstep()

    def in_peer(source: Value, rank: Value) -> Value:
        tensor = tensor_value(source)
        return replace(tensor, address=map_to_rank(tensor.address, rank))

    return t.compute(op.result, in_peer, op.source, op.rank)


def _element(op: tile.LoadOp | tile.StoreOp | tile.PtrOp, t: Translator) -> Any:
    """A function of the warp that gives the element's index before a swizzle, and its coordinate with the shape.

    The coordinate of an access is checked; that of a pointer is not, since an access may be left out.
    """
    coords, site, accesses = t.slots(op.coords), site_of(op), not isinstance(op, tile.PtrOp)
    coord, type, tensor = op.coord.data, op.tensor.type, t.slot(op.tensor)

    count, name = len(coords), name_of(op.tensor)

    @memoise
    def fixed_by(*values: Value) -> list[tuple[Value, Value]]:
        shape = actual(type.layout.data, values[count:]).shape
        return list(fixed_modes(unwrap(fill_coordinate(coord, values[:count])), shape))

    @memoise
    def index_of(*values: Value) -> Value:
        layout = actual(type.layout.data, values[count:])
        return checked_index(crd2idx(unwrap(fill_coordinate(coord, values[:count])), layout.shape, layout.stride))

    def index(warp: Warp) -> tuple[Value, list[tuple[Value, Value]]]:
        value = tensor_value(warp.registers[tensor])
        values = [*[warp.registers[slot] for slot in coords], *value.scalars]
        fixed = fixed_by(*values)
        if accesses:
            check_inside(warp, site, fixed, name)
            if value.guard is not None:
                check_element(warp, op, value.guard, unwrap(fill_coordinate(coord, values[:count])))
        with in_64_bits(warp, site):
            return index_of(*values), fixed

    return index


def check_inside(warp: Warp, site: Site, fixed: Sequence[tuple[Value, Value]], name: str | None = None) -> None:
    """A fault for a lane in which an integer of a coordinate is out of range for its mode."""
    for integer, extent in fixed:
        bad = (integer < 0) | (integer >= extent)
        if anywhere(bad):
            lane = int((warp.live() & bad).argmax()) if varies(bad) else 0
            place, count = (value[lane] if varies(value) else value for value in (integer, extent))
            text = f"the coordinate {place} is outside the {count} elements of its mode"
            if name is not None:
                text += f" of {name}"
            warp.fault_where(bad, Code.SIM_OUT_OF_BOUNDS, site, text, HINT)


def _load(op: tile.LoadOp, t: Translator) -> Step:
    tensor, result, kind = t.slot(op.tensor), t.slot(op.result), t.kind(op.result)
    index, source = _element(op, t), port(op, op.tensor.type, "load", t)

    def step(warp: Warp) -> None:
        registers = warp.registers
        content = source.load(warp, tensor_value(registers[tensor]), index(warp)[0])
        registers[result] = from_bytes(warp, content, kind)

    return step


def _store(op: tile.StoreOp, t: Translator) -> Step:
    tensor, value, kind = t.slot(op.tensor), t.slot(op.value), t.kind(op.value)
    index, target = _element(op, t), port(op, op.tensor.type, "store", t)

    def step(warp: Warp) -> None:
        registers = warp.registers
        content = to_bytes(warp, registers[value], kind)
        target.store(warp, tensor_value(registers[tensor]), index(warp)[0], content)

    return step


def _ptr(op: tile.PtrOp, t: Translator) -> Step:
    tensor, result = t.slot(op.tensor), t.slot(op.result)
    element, place, view = _element(op, t), port(op, op.tensor.type, "load", t), name_of_view(op, op.tensor)

    def step(warp: Warp) -> None:
        registers = warp.registers
        index, fixed = element(warp)
        address = place.address(tensor_value(registers[tensor]), index)
        registers[result] = warp.led_outside(address, view, fixed)

    return step


def _print(op: tile.PrintOp, t: Translator) -> Step:
    tensor, text, type, site = t.slot(op.tensor), op.text.data, op.tensor.type, site_of(op)

    def step(warp: Warp) -> None:
        for header in _headers(warp, text, type, tensor_value(warp.registers[tensor])):
            warp.launch.print(header + "\n", site)

    return step


def _headers(warp: Warp, text: str, type: tile.TensorType, tensor: TensorValue) -> list[str]:
    """The line that names a tensor, for each active lane."""
    addresses = warp.select(tensor.address).tolist()
    scalars = [warp.select(scalar).tolist() for scalar in tensor.scalars]
    return [
        tensor_header(text, type, f"{address:#x}", [integers[lane] for integers in scalars])
        for lane, address in enumerate(addresses)
    ]


def _print_tensor(op: tile.PrintTensorOp, t: Translator) -> Step:
    tensor, text, type, site = t.slot(op.tensor), op.text.data, op.tensor.type, site_of(op)
    source = port(op, type, "load", t)
    kind = kind_of(type.element_type)
    assert kind is not None
    coords = elements_in_print_order(type.plain_layout)
    check_count(op, type.plain_layout)

    def step(warp: Warp) -> None:
        value = tensor_value(warp.registers[tensor])
        layout = tensor_layout(type, value)
        warp.launch.spend(size(layout) * warp.warps, site)
        rows = [[layout(coord) for coord in row] for row in coords]
        numbers = [[_numbers(source.load(warp, value, index), kind) for index in row] for row in rows]
        for lane, header in enumerate(_headers(warp, text, type, value)):
            lines = ["".join(f"  {_show(n[lane])}" for n in row) for row in numbers]
            warp.launch.print("\n".join([header + ":", *lines]) + "\n", site)

    return step


def _numbers(content: object, kind: ValueKind) -> list[object]:
    return np.ascontiguousarray(content).view(kind.dtype)[:, 0].tolist()


def _show(number: Any) -> str:
    """An element as the device's printf writes it: %g or %d."""
    return f"{number}" if isinstance(number, int) else f"{float(number):g}"


TILE_MEMORY: Rules = {
    tile.AllocOp: _alloc,
    tile.FragmentOp: _alloc,
    tile.AliasOp: _alias,
    tile.ChooseOp: _choose,
    tile.PeerOp: _peer,
    tile.TensorAtOp: _tensor_at,
    tile.LoadOp: _load,
    tile.StoreOp: _store,
    tile.PtrOp: _ptr,
    tile.PrintOp: _print,
    tile.PrintTensorOp: _print_tensor,
}
