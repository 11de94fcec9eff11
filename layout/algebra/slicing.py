# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fixing some modes of a layout and keeping others (CuTe's slice, dice and slice_and_offset).

In a coordinate an underscore (None) keeps a mode, an integer fixes it.
"""

from typing import Any

from ...base.errors import Code, LayoutError
from .coordinates import crd2idx
from .core import ComposedLayout, Layout, LayoutLike, plain_layout
from .integers import Coord, add, as_coordinate
from .inttuple import dice_tuple, slice_tuple


def slice_and_offset(coord: Coord, layout: LayoutLike) -> tuple[LayoutLike, Any]:
    """The layout of the modes that `coord` keeps, and the index at which it starts.

    Integers of `coord` may be dynamic. For a composed layout the start moves into its offset, and the index
    returned is 0. Raises `LayoutError` (E0201) if `coord` does not fit the shape.
    """
    outer = plain_layout(layout)
    assert type(outer) is Layout
    sliced = Layout(slice_tuple(coord, outer.shape), slice_tuple(coord, outer.stride))
    offset = crd2idx(coord, outer.shape, outer.stride)
    if type(layout) is ComposedLayout:
        return ComposedLayout(layout.inner, add(layout.offset, offset), sliced), 0
    return sliced, as_coordinate(offset)


def slice_(coord: Coord, layout: LayoutLike) -> LayoutLike:
    """The layout of the modes that `coord` keeps (for a composed layout, with the offset of the others)."""
    return slice_and_offset(coord, layout)[0]


def dice(coord: Coord, layout: LayoutLike) -> Layout:
    """The layout of the modes that `coord` fixes. Raises `LayoutError` (E0211) for a composed layout."""
    if type(layout) is ComposedLayout:
        raise LayoutError(Code.COMPOSED_UNSUPPORTED, f"dice is not defined for the composed layout {layout}")
    assert type(layout) is Layout
    return Layout(dice_tuple(coord, layout.shape), dice_tuple(coord, layout.stride))


def domain_offset(coord: Coord, layout: LayoutLike) -> tuple[LayoutLike, Any]:
    """`layout` as seen from `coord`: a layout and the index where it starts (0 for a composed layout)."""
    if type(layout) is ComposedLayout:
        offset = add(layout.offset, crd2idx(coord, layout.outer.shape, layout.outer.stride))
        return ComposedLayout(layout.inner, offset, layout.outer), 0
    return layout, layout(coord)
