# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The part of a ragged tile that exists: views of it keep account of which element of the whole tensor each element is.

Past the end of a row an address is that of the next row, in bounds of the memory: only the coordinate tells. At stage
`cute`, where views are operations, the same views are taken of the tensor's coordinates; an access to one outside the
tensor's shape is a fault. Coordinates that a view cannot follow are not checked.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray
from xdsl.ir import Operation

from ....base.errors import Code, LayoutError
from ....dialects.kernel import KernelOp
from ....dialects.tile.divisibility import Remedies
from ....dialects.tile.view_base import LayoutViewOp, TilingViewOp
from ....dialects.tile.views import CompositionOp, DomainOffsetOp
from ....layout.algebra.axes import along
from ....layout.algebra.core import Layout, LayoutLike, cosize, make_identity_layout, make_layout, size
from ....layout.algebra.integers import Coord, add
from ....layout.algebra.inttuple import leaves, repeat_like, transform_leaves
from ....layout.algebra.modes import slice_and_offset
from ...arrays.storage import distances
from ..faults import site_of
from ..values import Value, anywhere, not_far, varies
from ..values.lane_int import lane_int
from ..warp import Warp
from .provenance import HINT, name_of, name_of_view

Relayout: TypeAlias = Callable[[Layout], LayoutLike]
_BOUNDS = "access only the elements inside the bounds that tile.bounds of the coordinates returns"


@dataclass(frozen=True, slots=True, eq=False)
class Guard:
    """The coordinates of a tensor's elements in the tensor that was tiled: `start` plus `layout`, within `shape`.
    `tiles` is the ragged view, None for another one.
    """

    layout: Layout
    start: Any
    shape: Any
    tiles: TilingViewOp | None


def begin(op: LayoutViewOp, layout: Layout) -> Guard | None:
    """The guard of a tensor under a ragged view, one that begins further on, or one that goes on beyond the end; None
    for another view, or extents that differ by lane.
    """
    tiles = op if isinstance(op, TilingViewOp) and op.ragged is not None else None
    if not (tiles is not None or isinstance(op, DomainOffsetOp) or _goes_on(op, layout)) or any(
        varies(n) for n in leaves(layout.shape)
    ):
        return None
    shape = transform_leaves(int, layout.shape)
    return Guard(make_identity_layout(shape), repeat_like(shape, 0), shape, tiles)


def _goes_on(op: LayoutViewOp, layout: Layout) -> bool:
    """Whether a view composes the tensor with a layout that names places beyond it."""
    if not isinstance(op, CompositionOp):
        return False
    tiler, modes = op.tiler.data, [layout[mode] for mode in range(len(layout))]
    parts = list(zip(tiler, modes, strict=False)) if isinstance(tiler, tuple) else [(tiler, layout)]
    sizes = [(cosize(part), size(mode)) for part, mode in parts if isinstance(part, Layout)]
    return any(type(places) is int and type(extent) is int and places > extent for places, extent in sizes)


def view_guard(op: LayoutViewOp, relayout: Relayout, guard: Guard, coords: Sequence[Value]) -> Guard | None:
    """The guard of a view with the `relayout` of `op`; None if its coordinates cannot be followed."""
    try:
        whole = relayout(guard.layout)
        coord = op.coordinate(whole, [lane_int(x).value for x in coords])
        layout, distance = (whole, 0) if coord is None else slice_and_offset(coord, whole)
        return Guard(
            cast(Layout, layout), transform_leaves(not_far, add(guard.start, distance)), guard.shape, guard.tiles
        )
    except LayoutError:
        return None


def check_element(warp: Warp, op: Operation, guard: Guard, coord: Coord) -> None:
    """A fault of the first lane whose element at `coord` is outside the tensor that was tiled."""
    try:
        place = add(guard.start, guard.layout(coord))
    except LayoutError:
        return
    bad = False
    for integer, extent in zip(leaves(place), leaves(guard.shape), strict=True):
        bad = bad | (integer >= extent)
    _fault(warp, op, guard, bad)


def check_all(warp: Warp, op: Operation, guard: Guard, flags: NDArray[np.bool_] | None) -> None:
    """A fault of the first lane that accesses an element outside; `flags` says which it does, in their order."""
    if flags is not None and flags.shape[1] != int(guard.layout.size):
        return
    bad = np.zeros((warp.active, int(guard.layout.size)), bool)
    for path, start, extent in _axes(guard.start, guard.shape):
        bad |= warp.select(start)[:, None] + distances(along(guard.layout, path)) >= extent
    lanes = np.zeros(warp.lanes, bool)
    lanes[warp.lane_numbers()] = (bad if flags is None else bad & flags).any(axis=1)
    _fault(warp, op, guard, lanes)


def _axes(start: Any, shape: Any, path: tuple[int, ...] = ()) -> list[tuple[tuple[int, ...], Value, int]]:
    if isinstance(shape, tuple):
        parts = zip(start, cast("tuple[Any, ...]", shape), strict=True)
        return [axis for mode, (s, n) in enumerate(parts) for axis in _axes(s, n, (*path, mode))]
    return [(path, start, shape)]


def _fault(warp: Warp, op: Operation, guard: Guard, bad: object) -> None:
    if anywhere(bad):
        where, hint = "in a view that goes beyond it", HINT
        if guard.tiles is not None:
            why, hint = _misfit(guard.tiles, make_layout(guard.shape))
            where = f"in a ragged tile{why}"
        text = f"the access is to a coordinate outside the tensor's shape {guard.shape}, {where}"
        warp.fault_where(bad, Code.SIM_OUT_OF_BOUNDS, site_of(op), text, hint)


def _misfit(op: TilingViewOp, layout: LayoutLike) -> tuple[str, str]:
    """Why the tiles of a ragged view reach beyond a tensor of a layout, after a colon, and a hint."""
    error = op.misfit(layout)
    if error is None:
        return "", _BOUNDS
    return f": {error.message}", error.hint.replace(Remedies().ragged, _BOUNDS)


def ragged_tiles(kernel: KernelOp) -> Mapping[str, tuple[str, str]]:
    """How the tiles of ragged views reach beyond tensor arguments, by the names of these, and hints."""
    found: dict[str, tuple[str, str]] = {}
    for op in kernel.walk():
        if isinstance(op, TilingViewOp) and op.ragged is not None and (name := name_of(op.source)) is not None:
            why, hint = _misfit(op, op.source.type.layout.data)
            found.setdefault(name, (f"the tiles of {name_of_view(op, op.source)} reach beyond it{why}", hint))
    return found
