# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rules for coordinate tensors: a register holds the coordinate at which the tensor starts, integers or lanes."""

import numpy as np

from ....base.errors import Code
from ....dialects import tile
from ....dialects.cute.values import unknowns
from ....dialects.tile.assembly import fill_coordinate, unwrap
from ....dialects.tile.view_base import LayoutViewOp
from ....layout.algebra.axes import along
from ....layout.algebra.coordinates import fixed_modes
from ....layout.algebra.integers import add
from ....layout.algebra.inttuple import leaves
from ....layout.algebra.modes import slice_and_offset
from ...arrays.storage import distances
from ..events import Step
from ..faults import SimulationError, site_of
from ..memory.tensors import check_count, port
from ..translate import Rules, Translator
from ..values import CoordTensorValue, TensorValue, not_far
from ..values.lane_int import lane_int
from ..values.scalars import actual, lane_layout, no_zero_extents, numbers, scalars_for
from ..warp import Warp
from .tile_memory import check_inside


def _identity(op: tile.IdentityOp, t: Translator) -> Step | None:
    assert isinstance(op.result.type, tile.CoordTensorType)
    start, extents = op.result.type.start.data, len(unknowns(op.result.type.plain_layout))
    if not extents:
        t.constant(op.result, CoordTensorValue(start))
        return None
    like, given, result = None if op.like is None else t.slot(op.like), t.slots(op.scalars), t.slot(op.result)

    def step(warp: Warp) -> None:
        registers = warp.registers
        held = tuple([registers[slot] for slot in given]) if like is None else registers[like].scalars[:extents]
        registers[result] = CoordTensorValue(start, held)

    return step


def coordinate_view(op: LayoutViewOp, type: tile.CoordTensorType, t: Translator) -> Step:
    """The step of a view of a coordinate tensor of this type."""
    source, result, coords = t.slot(op.source), t.slot(op.result), t.slots(op.coords)
    static = None if unknowns(type.plain_layout) else op.relayout(type.plain_layout)
    site = site_of(op)

    def step(warp: Warp) -> None:
        registers = warp.registers
        tensor = registers[source]
        with no_zero_extents(warp, site):
            whole = op.relayout(lane_layout(type.plain_layout, tensor.scalars)) if static is None else static
            coord = op.coordinate(whole, [lane_int(registers[slot]) for slot in coords])
            sliced, distance = (whole, 0) if coord is None else slice_and_offset(coord, whole)
        scalars = scalars_for(op.result.type.layout.data, sliced)
        registers[result] = CoordTensorValue(numbers(add(tensor.start, numbers(distance))), scalars)

    return step


def _coordinate(op: tile.CoordinateOp, t: Translator) -> Step:
    source, results, coords = t.slot(op.tensor), t.slots(op.integers), t.slots(op.coords)
    type, site = op.tensor.type, site_of(op)

    def step(warp: Warp) -> None:
        registers = warp.registers
        tensor, values = registers[source], [registers[slot] for slot in coords]
        layout = actual(type.plain_layout, tensor.scalars)
        check_inside(warp, site, list(fixed_modes(unwrap(fill_coordinate(op.coord.data, values)), layout.shape)))
        for slot, integer in zip(results, leaves(op.value(tensor.start, layout, values)), strict=True):
            registers[slot] = integer

    return step


def _bounds(op: tile.BoundsOp, t: Translator) -> Step:
    source, result, bounds = t.slot(op.tensor), t.slot(op.result), t.slots(op.coords)
    layout = op.tensor.type.plain_layout
    check_count(op, layout)
    if unknowns(layout):
        raise SimulationError(
            Code.SIM_UNSUPPORTED,
            f"the simulator has no predicates of coordinates with run-time strides, {layout}",
            site=site_of(op),
        )
    steps = {path: distances(along(layout, path)) for path, _ in op.limits(op.coords)}
    places = distances(op.result.type.plain_layout).tolist()
    allocation, local = t.local(op.result.type.bytes), t.spaces.local
    target, value = port(op, op.result.type, "store", t), TensorValue(allocation.start)

    def step(warp: Warp) -> None:
        registers = warp.registers
        inside = np.ones((warp.active, len(places)), bool)
        for path, bound in op.limits([registers[slot] for slot in bounds]):
            start = registers[source].start
            for mode in path:
                start = start[mode]
            first = warp.select(not_far(start))
            inside &= first[:, None] + steps[path] < warp.select(bound)[:, None]
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
