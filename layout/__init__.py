# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The layout algebra in one place: every operation on layouts under its CuTe name.

Here the algebra gets its pictures, too: notebooks call the methods that this module gives to layouts and atoms.
"""

from .algebra.coalesce import coalesce, filter_zeros
from .algebra.coalesce import filter_layout as filter
from .algebra.complement import complement
from .algebra.compose import composition, with_shape
from .algebra.core import (
    ComposedLayout,
    Layout,
    LayoutLike,
    Tiler,
    coshape,
    cosize,
    depth,
    make_identity_layout,
    make_layout,
    make_layout_like,
    make_ordered_layout,
    make_row_major_layout,
    rank,
    size,
)
from .algebra.display import Displayed
from .algebra.divide import flat_divide, logical_divide, tiled_divide, zipped_divide
from .algebra.inverse import left_inverse, max_alignment, max_common_layout, max_common_vector, nullspace, right_inverse
from .algebra.modes import (
    append,
    dice,
    domain_offset,
    group_modes,
    prepend,
    replace,
    select,
    slice_,
    slice_and_offset,
    take,
    ungroup_mode,
    zip_layout,
    zip_layouts,
)
from .algebra.modes import flatten_layout as flatten
from .algebra.modes import unflatten_layout as unflatten
from .algebra.product import (
    blocked_product,
    flat_product,
    logical_product,
    make_fragment_like,
    raked_product,
    tile_to_shape,
    tiled_product,
    zipped_product,
)
from .algebra.recast import downcast, recast_layout, upcast
from .algebra.swizzle import Swizzle, make_swizzle

__all__ = [
    "ComposedLayout",
    "Layout",
    "LayoutLike",
    "Swizzle",
    "Tiler",
    "append",
    "blocked_product",
    "coalesce",
    "complement",
    "composition",
    "coshape",
    "cosize",
    "depth",
    "dice",
    "domain_offset",
    "downcast",
    "filter",
    "filter_zeros",
    "flat_divide",
    "flat_product",
    "flatten",
    "group_modes",
    "left_inverse",
    "logical_divide",
    "logical_product",
    "make_fragment_like",
    "make_identity_layout",
    "make_layout",
    "make_layout_like",
    "make_ordered_layout",
    "make_row_major_layout",
    "make_swizzle",
    "max_alignment",
    "max_common_layout",
    "max_common_vector",
    "nullspace",
    "prepend",
    "raked_product",
    "rank",
    "recast_layout",
    "replace",
    "right_inverse",
    "select",
    "size",
    "slice_",
    "slice_and_offset",
    "take",
    "tile_to_shape",
    "tiled_divide",
    "tiled_product",
    "unflatten",
    "ungroup_mode",
    "upcast",
    "with_shape",
    "zip_layout",
    "zip_layouts",
    "zipped_divide",
    "zipped_product",
]


def _html(x: Displayed) -> str:
    """The notation and, where it can be drawn, the picture, as IPython asks for it."""
    from .drawing.pictures import notebook_html  # most programs never draw

    return notebook_html(x.displayed)


def _svg(x: Displayed) -> str | None:
    """The picture, as IPython asks for it; None if there is none, and the notebook shows the text."""
    from .drawing.pictures import notebook_svg

    return notebook_svg(x.displayed)


for _name, _method in (("_repr_html_", _html), ("_repr_svg_", _svg)):
    setattr(Displayed, _name, _method)
