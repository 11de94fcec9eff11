# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rules for views of tensors: the same layout algebra as everywhere, on coordinates that are arrays over
lanes.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cache

from xdsl.dialects import arith
from xdsl.ir import Operation, SSAValue

from ....base.errors import Code
from ....dialects import tile
from ....dialects.cute.values import unknowns
from ....dialects.tile.assembly import fill_coordinate, unwrap
from ....dialects.tile.view_base import LayoutViewOp
from ....layout.algebra.coordinates import fixed_modes
from ....layout.algebra.core import plain_layout
from ....layout.algebra.integers import Unknown
from ....layout.algebra.modes import slice_and_offset
from ..events import Step
from ..faults import Site, site_of
from ..memory.provenance import name_of_view
from ..memory.ragged_guard import Guard, Relayout, begin, view_guard
from ..memory.tensors import checked_index, in_64_bits, move, recast, tensor_layout, tensor_value
from ..translate import Rules, Translator
from ..values import CoordTensorValue, TensorValue, Value, anywhere, memoise, varies
from ..values.lane_int import lane_int, number
from ..values.scalars import actual, lane_layout, narrowed, no_zero_extents, numbers, scalars_for
from ..warp import Warp
from .tile_coordinates import coordinate_view


def _view(op: LayoutViewOp, t: Translator) -> Step:
    source, result, coords = t.slot(op.source), t.slot(op.result), t.slots(op.coords)
    type, site = op.source.type, site_of(op)
    if isinstance(type, tile.CoordTensorType):
        return coordinate_view(op, type, t)
    if unknowns(type.layout.data):
        return _run_time_view(op, type, t)
    whole = op.relayout(type.layout.data)
    plain, view = plain_layout(whole), name_of_view(op, op.source)
    relayout = cache(op.relayout)

    @memoise
    def place(*values: Value) -> tuple[Value, list[tuple[Value, Value]]]:
        """How far on the view begins, and the integers of its coordinate, with the extents of their modes."""
        coord = op.coordinate(whole, values)
        if coord is None:
            return 0, []
        return slice_and_offset(coord, plain)[1], list(fixed_modes(coord, plain.shape))

    def step(warp: Warp) -> None:
        registers = warp.registers
        tensor = tensor_value(registers[source])
        values = [registers[slot] for slot in coords]
        seen = _make_guard(op, relayout, type, tensor, values)
        with in_64_bits(warp, site):
            distance, fixed = place(*values)
            tensor = move(tensor, distance, type) if fixed else tensor
        tensor = _led_outside(warp, tensor, view, fixed)
        registers[result] = tensor if seen is None else replace(tensor, guard=seen)

    return step


def _led_outside(warp: Warp, tensor: TensorValue, view: str, fixed: Iterable[tuple[Value, Value]]) -> TensorValue:
    """A view at integers of a coordinate, each with the extent of its mode: without memory where one is outside."""
    address = warp.led_outside(tensor.address, view, list(fixed))
    return tensor if address is tensor.address else replace(tensor, address=address)


def _make_guard(
    op: LayoutViewOp, relayout: Relayout, type: tile.TensorType, tensor: TensorValue, coords: list[Value]
) -> Guard | None:
    """The guard of a view of `tensor`, if the tensor belongs to a ragged tile."""
    before = begin(op, tensor_layout(type, tensor)) if tensor.guard is None else tensor.guard
    return None if before is None else view_guard(op, relayout, before, coords)


def _run_time_view(op: LayoutViewOp, type: tile.TensorType, t: Translator) -> Step:
    """A view of a tensor whose type has `?`: the algebra runs on their values."""
    source, result, coords = t.slot(op.source), t.slot(op.result), t.slots(op.coords)
    site, view, relayout = site_of(op), name_of_view(op, op.source), cache(op.relayout)

    def step(warp: Warp) -> None:
        registers = warp.registers
        tensor = tensor_value(registers[source])
        with in_64_bits(warp, site), no_zero_extents(warp, site):
            whole = plain_layout(op.relayout(lane_layout(type.layout.data, tensor.scalars)))
            coord = op.coordinate(whole, [lane_int(registers[slot]) for slot in coords])
            sliced, distance = (whole, 0) if coord is None else slice_and_offset(coord, whole)
            seen = _make_guard(op, relayout, type, tensor, [registers[slot] for slot in coords])
            tensor = move(tensor, numbers(distance), type)
            fixed = [(narrowed(integer), narrowed(extent)) for integer, extent in fixed_modes(coord, whole.shape)]
        tensor = _led_outside(warp, tensor, view, fixed)
        registers[result] = replace(tensor, scalars=scalars_for(op.result.type.layout.data, sliced), guard=seen)

    return step


def _make_tensor(op: tile.MakeTensorOp, t: Translator) -> Step:
    source, result, scalars = t.slot(op.source), t.slot(op.result), t.slots(op.scalars)
    known, site = unknowns(op.layout.data), site_of(op)

    def step(warp: Warp) -> None:
        registers = warp.registers
        values = [registers[slot] for slot in scalars]
        for unknown, value in zip(known, values, strict=True):
            _check_scalar(warp, site, unknown, value)
        tensor = registers[source]
        if isinstance(tensor, CoordTensorValue):
            registers[result] = CoordTensorValue(tensor.start, tuple(values))
        else:
            registers[result] = TensorValue(tensor_value(tensor).address, 0, tuple(values))

    return step


def _check_scalar(warp: Warp, site: Site, unknown: Unknown, value: Value) -> None:
    """A fault for a lane whose integer breaks a promise of its layout."""
    for bad, problem in (
        (value % unknown.div != 0, f"is not a multiple of {unknown.div}"),
        ((value < 0) | (value >= 1 << (unknown.width - 1)), f"is negative or does not fit in {unknown.width} bits"),
    ):
        if anywhere(bad):
            text = f"an integer for {unknown} {problem}"
            warp.fault_where(
                bad, Code.SIM_ARITHMETIC, site, text, "promise less in the layout, or pass an integer that fits it"
            )


def _of_mode(op: tile.DimOp | tile.StrideOp, t: Translator) -> Step:
    layout = op.tensor.type.layout.data

    def integer(tensor: Value) -> Value:
        return number(op.integer(plain_layout(lane_layout(layout, tensor.scalars))))

    return t.compute(op.result, integer, op.tensor)


def _get_scalars(op: tile.GetScalarsOp, t: Translator) -> Step:
    tensor, results = t.slot(op.tensor), t.slots(op.scalars)

    def step(warp: Warp) -> None:
        registers = warp.registers
        for slot, scalar in zip(results, registers[tensor].scalars, strict=True):
            registers[slot] = scalar

    return step


def _recast(op: tile.RecastOp, t: Translator) -> Step:
    before, after = op.source.type, op.result.type

    def recasted(source: Value) -> Value:
        tensor = recast(tensor_value(source), before.element_bits, after.element_bits)
        layout = op.relayout(lane_layout(before.layout.data, tensor.scalars))
        return replace(tensor, scalars=scalars_for(after.layout.data, layout))

    return t.compute(op.result, recasted, op.source)


def _folded_view(op: tile.ViewOp, t: Translator) -> Step:
    source, result = t.slot(op.source), t.slot(op.result)
    offset = None if op.offset is None else t.slot(op.offset)
    scalars = t.slots(op.scalars)
    type, site = op.source.type, site_of(op)
    old, new = type.element_bits, op.result.type.element_bits
    view, places = name_of_view(op, op.source), [] if op.offset is None else _places(op.offset, t)

    def step(warp: Warp) -> None:
        registers = warp.registers
        tensor = recast(tensor_value(registers[source]), old, new)
        if offset is not None:
            with in_64_bits(warp, site):
                tensor = move(tensor, registers[offset], type)
        for place, slots in places:
            tensor = _led_outside(warp, tensor, view, place(*[registers[slot] for slot in slots]))
        registers[result] = replace(tensor, scalars=tuple([registers[slot] for slot in scalars]))

    return step


def _places(offset: SSAValue, t: Translator) -> list[tuple[Callable[..., list[tuple[Value, Value]]], tuple[int, ...]]]:
    """The coordinates whose indices make up the offset of a view: functions of operands, with the registers of these,
    that give their integers, each with the extent of its mode.
    """
    op = offset.owner
    if isinstance(op, arith.AddiOp):
        return [place for part in op.operands for place in _places(part, t)]
    if not isinstance(op, tile.Crd2IdxOp):
        return []
    count = len(op.coords)
    return [(memoise(lambda *values: op.fixed(values[:count], values[count:])), t.slots(op.operands))]


def _crd2idx(op: tile.Crd2IdxOp, t: Translator) -> Step:
    operands, result, count = t.slots(op.operands), t.slot(op.result), len(op.coords)
    coord, static, site = op.coord.data, op.plain_layout, site_of(op)

    @memoise
    def index(*values: Value) -> Value:
        filled = unwrap(fill_coordinate(coord, values[:count]))
        found = actual(static, values[count:])(filled)
        return narrowed(found) if varies(found) else checked_index(found)

    def step(warp: Warp) -> None:
        registers = warp.registers
        with in_64_bits(warp, site):
            registers[result] = index(*[lane_int(registers[slot]).value for slot in operands])

    return step


def _rasterize(op: tile.RasterizeOp, t: Translator) -> Step:
    index, sizes, results = t.slot(op.index), t.slots(op.sizes), t.slots(op.results)

    def step(warp: Warp) -> None:
        registers = warp.registers
        m, n = op.tile(registers[index], [registers[slot] for slot in sizes])
        registers[results[0]], registers[results[1]] = m, n

    return step


def _nothing(op: Operation, t: Translator) -> None:
    """A tiled copy is all in its type, and a return has nothing to do."""


TILE_VIEWS: Rules = {
    LayoutViewOp: _view,
    tile.ViewOp: _folded_view,
    tile.Crd2IdxOp: _crd2idx,
    tile.RecastOp: _recast,
    tile.MakeTensorOp: _make_tensor,
    tile.DimOp: _of_mode,
    tile.StrideOp: _of_mode,
    tile.GetScalarsOp: _get_scalars,
    tile.RasterizeOp: _rasterize,
    tile.TiledCopyOp: _nothing,
    tile.TiledMmaOp: _nothing,
    tile.ReturnOp: _nothing,
}
