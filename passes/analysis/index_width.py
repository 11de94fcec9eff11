# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The bits that an index needs, as the extents, strides and coordinates of a place prove."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from xdsl.ir import SSAValue

from ...dialects.cute.values import with_scalars
from ...dialects.tile.assembly import fill_coordinate, unwrap
from ...layout.algebra.core import Layout
from ...layout.algebra.inttuple import leaves
from .ranges import Ranges


@dataclass(frozen=True, slots=True)
class Place:
    """A coordinate in a layout; `values` are its run-time leaves, `scalars` those of the layout, of type `index`."""

    layout: Layout
    coord: Any
    values: Sequence[SSAValue] = ()
    scalars: Sequence[SSAValue] = ()


def greatest_index(place: Place, ranges: Ranges) -> int:
    """The greatest index that a coordinate within the layout's shape can have."""
    layout = with_scalars(place.layout, place.scalars)
    coord = unwrap(fill_coordinate(place.coord, place.values))
    return _reach(coord, layout.shape, layout.stride, ranges)


def _reach(coord: Any, shape: Any, stride: Any, ranges: Ranges) -> int:
    if isinstance(coord, tuple):
        modes = zip(cast("tuple[Any, ...]", coord), shape, stride, strict=True)
        return sum(_reach(c, s, d, ranges) for c, s, d in modes)
    if isinstance(shape, tuple):  # one number for several modes: it can be anywhere in them
        modes = zip(leaves(cast(Any, shape)), leaves(stride), strict=True)
        return sum((_greatest(s, ranges) - 1) * _greatest(d, ranges) for s, d in modes)
    last = coord if isinstance(coord, int) else min(_greatest(coord, ranges), _greatest(shape, ranges) - 1)
    return last * _greatest(stride, ranges)


def _greatest(x: int | SSAValue, ranges: Ranges) -> int:
    return ranges.of(x)[1] if isinstance(x, SSAValue) else x
