# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rules for coordinate tensors: a register holds the coordinate at which the tensor starts, integers or lanes."""

from typing import Any

import numpy as np

from ....dialects import tile
from ....dialects.tile.assembly import fill_coordinate, unwrapped
from ....dialects.tile.view_base import LayoutViewOp
from ....layout.axes import along
from ....layout.core import LayoutLike
from ....layout.integers import add
from ....layout.inttuple import leaves
from ....layout.slicing import slice_and_offset
from ...tensor import distances
from ..faults import site_of
from ..tensors import check_count, plain, port
from ..translate import Rules, Step, Translator
from ..values import TensorValue
from ..warp import Warp
from .tile_memory import check_inside


def _identity(op: tile.IdentityOp, t: Translator) -> None:
    assert isinstance(op.result.type, tile.CoordTensorType)
    t.constant(op.result, op.result.type.start.data)


def coordinate_view(op: LayoutViewOp, whole: LayoutLike, t: Translator) -> Step:
    """The step of a view of a coordinate tensor, whose layout before slicing is `whole`."""
    source, result, coords = t.slot(op.source), t.slot(op.result), t.slots(op.coords)

    def step(warp: Warp) -> None:
        registers = warp.registers
        coord = op.coordinate(whole, [registers[slot] for slot in coords])
        start = registers[source]
        registers[result] = start if coord is None else add(start, slice_and_offset(coord, whole)[1])

    return step


def _coordinate(op: tile.CoordinateOp, t: Translator) -> Step:
    source, results, coords = t.slot(op.tensor), t.slots(op.integers), t.slots(op.coords)
    layout, site = op.tensor_type.plain_layout, site_of(op)

    def step(warp: Warp) -> None:
        registers = warp.registers
        values = [registers[slot] for slot in coords]
        check_inside(warp, site, unwrapped(fill_coordinate(op.coord.data, values)), layout.shape)
        for slot, integer in zip(results, leaves(op.value(registers[source], layout, values)), strict=True):
            registers[slot] = integer

    return step


def _bounds(op: tile.BoundsOp, t: Translator) -> Step:
    source, result, bounds = t.slot(op.tensor), t.slot(op.result), t.slots(op.coords)
    layout = op.tensor_type.plain_layout
    check_count(op, layout)
    steps = {path: distances(along(layout, path)) for path, _ in op.limits(op.coords)}
    places = distances(plain(op.result_type)).tolist()
    allocation, local = t.local(op.result_type.bytes), t.spaces.local
    target, value = port(op, op.result_type, "store", t), TensorValue(allocation.start)

    def step(warp: Warp) -> None:
        registers = warp.registers
        inside = np.ones((warp.active, len(places)), bool)
        for path, bound in op.limits([registers[slot] for slot in bounds]):
            start: Any = registers[source]
            for mode in path:
                start = start[mode]
            inside &= warp.select(start)[:, None] + steps[path] < warp.select(bound)[:, None]
        local.define(warp, allocation)
        for place, column in zip(places, inside.T, strict=True):
            target.store(warp, value, place, column.astype(np.uint8)[:, None])
        registers[result] = value

    return step


TILE_COORDINATES: Rules = {
    tile.IdentityOp: _identity,
    tile.CoordinateOp: _coordinate,
    tile.BoundsOp: _bounds,
}
