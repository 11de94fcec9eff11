# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Dividing a layout into tiles (CuTe's layout.hpp).

A tiler is a layout, an extent, an underscore (None) or a tuple of tilers for the leading modes; other modes
are not divided. The forms differ in how they arrange the result, for a tiler of two modes:

    logical_divide   ((TileM,RestM),(TileN,RestN),L,...)
    zipped_divide    ((TileM,TileN),(RestM,RestN,L,...))
    tiled_divide     ((TileM,TileN),RestM,RestN,L,...)
    flat_divide      (TileM,TileN,RestM,RestN,L,...)

All raise `LayoutError` if the tiler has too many modes (E0202), or its extents do not divide those of the
layout (E0203, E0204).
"""

from ...base.errors import Code, LayoutError
from .axes import has_basis
from .coalesce import coalesce
from .complement import complement
from .compose import composition
from .core import AnyLayout, ComposedLayout, Layout, LayoutLike, Tiler, join, make_layout
from .modes import on_outer, spread, tile_unzip


def logical_divide(layout: LayoutLike, tiler: Tiler, *, merge_dynamic: bool = True) -> AnyLayout:
    """Each mode of `layout` as (tile, rest): inside a tile, and which tile.

    Dynamic extents of the rest become one mode, or one each without `merge_dynamic`; so in the other forms.
    """
    if type(layout) is ComposedLayout:
        return on_outer(layout, lambda inner: logical_divide(inner, tiler, merge_dynamic=merge_dynamic))
    assert type(layout) is Layout
    if tiler is None:
        return layout
    if isinstance(tiler, tuple):
        modes = list(layout)
        if len(tiler) > len(modes):
            raise LayoutError(Code.RANK_MISMATCH, f"the tiler has {len(tiler)} modes, {layout} has only {len(modes)}")
        divided = [logical_divide(m, t, merge_dynamic=merge_dynamic) for m, t in zip(modes, tiler, strict=False)]
        return join([*divided, *modes[len(tiler) :]])
    tile = tiler if type(tiler) is Layout else make_layout(tiler)
    whole = layout.shape if has_basis(tile.stride) else coalesce(layout).shape
    return composition(layout, join((tile, complement(tile, whole, merge_dynamic=merge_dynamic))))


def zipped_divide(layout: LayoutLike, tiler: Tiler, *, merge_dynamic: bool = True) -> AnyLayout:
    """`layout` as two modes: inside a tile, and which tile."""
    return tile_unzip(logical_divide(layout, tiler, merge_dynamic=merge_dynamic), tiler)


def tiled_divide(layout: LayoutLike, tiler: Tiler, *, merge_dynamic: bool = True) -> AnyLayout:
    """`layout` as one mode inside a tile, and one mode for each direction in which tiles repeat."""
    return spread(zipped_divide(layout, tiler, merge_dynamic=merge_dynamic), tile=False)


def flat_divide(layout: LayoutLike, tiler: Tiler, *, merge_dynamic: bool = True) -> AnyLayout:
    """`layout` as the modes inside a tile, followed by those in which tiles repeat."""
    return spread(zipped_divide(layout, tiler, merge_dynamic=merge_dynamic), tile=True)
