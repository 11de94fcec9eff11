# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tiles that do not cover their tensor, which --ragged allows: the excess, and the number of elements inside."""

from collections.abc import Callable, Iterator
from typing import Any

from tilefold.base.errors import LayoutError
from tilefold.dialects.tile.divisibility import Remedies, check_tiles
from tilefold.layout.algebra.core import Layout, LayoutLike, Tiler, plain_layout, size
from tilefold.layout.algebra.integers import Unknown
from tilefold.layout.algebra.inttuple import flatten_to_tuple, is_fully_static, unflatten
from tilefold.layout.algebra.scalars import value_of
from tilefold.layout.tiling.tiled_copy import tile_shape

Cut = Callable[[LayoutLike], tuple[LayoutLike, Any]]
"""Takes a part out of a layout, and says at which index it starts."""

_REMEDIES = Remedies("", "give --ragged")
_DIGIT = 32  # bits for a coordinate of one mode
_MAX_COUNTED = 1 << 16  # elements of a part


def check_covered(layout: LayoutLike, tiler: Tiler) -> None:
    """Raises `LayoutError` (E0314), naming the mode, unless the tiles of `tiler` cover `layout` exactly."""
    check_tiles(plain_layout(layout), tiler, _REMEDIES)


def ragged_lines(name: str, layout: LayoutLike, tiler: Tiler) -> Iterator[str]:
    """A line for each mode of the tensor `name` that the tiles of `tiler` do not cover exactly."""
    plain = plain_layout(layout)
    pairs = zip(plain, tiler, strict=False) if isinstance(tiler, tuple) else ((plain, tiler),)
    for mode, (part, tile) in enumerate(pairs):
        if tile is None:
            continue
        whole, extent = size(part), size(Layout(tile_shape(tile), tile_shape(tile)))
        where = f"mode {mode} of {name}" if isinstance(tiler, tuple) else name
        if isinstance(whole, Unknown):
            if whole.div % extent:
                yield f"{where} has {whole} elements: its last tile of {extent} may reach beyond them"
        elif whole % extent:
            tiles = -(-whole // extent)
            number = "its only tile" if tiles == 1 else f"the last of its {tiles} tiles"
            yield f"{where} has {whole} elements: {number} of {extent} reaches {tiles * extent - whole} beyond them"


def within(layout: LayoutLike, cut: Cut) -> tuple[int, int] | None:
    """How many elements of a part of a tensor are within the tensor, and how many it has; None if that depends on
    integers of run time, or the part is large.
    """
    shape = plain_layout(layout).shape
    extents = flatten_to_tuple(shape)
    if not is_fully_static(shape):
        return None
    steps = unflatten([1 << (_DIGIT * place) for place in range(len(extents))], shape)
    try:
        part, start = cut(Layout(shape, steps))
    except LayoutError:  # modes of the tensor that its strides join are not joined by the steps
        return None
    if not is_fully_static(value_of(plain_layout(part).shape)) or size(part) > _MAX_COUNTED:
        return None
    first, count = value_of(start), value_of(size(part))
    inside = sum(_is_within(first + value_of(part(i)), extents) for i in range(count))
    return inside, count


def _is_within(index: int, extents: tuple[Any, ...]) -> bool:
    """Whether the coordinate whose digits an index holds is one of a tensor of these extents."""
    return all(index >> (_DIGIT * place) & ((1 << _DIGIT) - 1) < extent for place, extent in enumerate(extents))
