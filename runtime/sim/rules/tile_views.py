# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rules for views of tensors: the same layout algebra as everywhere, on coordinates that are arrays over
lanes.
"""

from xdsl.ir import Operation

from ....dialects import tile
from ....dialects.tile.assembly import fill_coordinate
from ....dialects.tile.view_base import LayoutViewOp
from ....layout.core import ComposedLayout
from ....layout.slicing import slice_and_offset
from ..faults import site_of
from ..tensors import checked_index, in_64_bits, moved, tensor_value
from ..translate import Rules, Step, Translator
from ..warp import Warp
from .tile_coordinates import coordinate_view


def _view(op: LayoutViewOp, t: Translator) -> Step:
    source, result, coords = t.slot(op.source), t.slot(op.result), t.slots(op.coords)
    type, site = op.source_type, site_of(op)
    whole = op.relayout(type.layout.data)
    if isinstance(type, tile.CoordTensorType):
        return coordinate_view(op, whole, t)
    plain = whole.inner if isinstance(whole, ComposedLayout) else whole

    def step(warp: Warp) -> None:
        registers = warp.registers
        tensor = tensor_value(registers[source])
        coord = op.coordinate(whole, [registers[slot] for slot in coords])
        if coord is not None:
            with in_64_bits(warp, site):
                _, distance = slice_and_offset(coord, plain)
                tensor = moved(tensor, distance, type)
        registers[result] = tensor

    return step


def _folded_view(op: tile.ViewOp, t: Translator) -> Step:
    source, result = t.slot(op.source), t.slot(op.result)
    offset = None if op.offset is None else t.slot(op.offset)
    type, site = op.source_type, site_of(op)

    def step(warp: Warp) -> None:
        registers = warp.registers
        tensor = tensor_value(registers[source])
        if offset is not None:
            with in_64_bits(warp, site):
                tensor = moved(tensor, registers[offset], type)
        registers[result] = tensor

    return step


def _crd2idx(op: tile.Crd2IdxOp, t: Translator) -> Step:
    coords, result = t.slots(op.coords), t.slot(op.result)
    coord, layout, site = op.coord.data, op.plain_layout, site_of(op)

    def step(warp: Warp) -> None:
        registers = warp.registers
        filled = fill_coordinate(coord, [registers[slot] for slot in coords])
        with in_64_bits(warp, site):
            registers[result] = checked_index(layout(filled[0] if len(filled) == 1 else filled))

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
    tile.RasterizeOp: _rasterize,
    tile.TiledCopyOp: _nothing,
    tile.TiledMmaOp: _nothing,
    tile.ReturnOp: _nothing,
}
