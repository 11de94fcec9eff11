# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""TMA copies played through on indices: each element inside of the tensor must land where the layout of shared
memory has it, and each outside must be zero.
"""

from itertools import product as cartesian
from typing import Any, TypeAlias, cast

from tilefold.layout.algebra.core import Layout, LayoutLike, make_identity_layout, plain_layout
from tilefold.layout.algebra.integers import add
from tilefold.layout.algebra.inttuple import flatten_to_tuple
from tilefold.layout.algebra.scalars import value_of
from tilefold.layout.tiling.partition import local_tile
from tilefold.layout.tma.tensor_map import TensorMap
from tilefold.layout.tma.tma_copy import TmaCopy

Coords: TypeAlias = tuple[Any, ...]

_OUTSIDE = -1
"""Stands for the zeros that fill a box beyond the tensor."""


def moves_tiles(copy: TmaCopy, smem: LayoutLike, tiler: Any) -> bool:
    """Whether the instructions for the first and the last tile move each element to its place, of maps whose elements
    are values.
    """
    gmem = Layout(value_of(copy.gmem.shape), value_of(copy.gmem.stride))
    coordinates = copy.coordinates(gmem)
    tiles, _ = local_tile(coordinates, tiler, (None,) * len(tiler))
    rest: list[int] = [mode.size for mode in list(plain_layout(tiles))[len(tiler) :]]
    first_and_last = {(0,) * len(rest), tuple(extent - 1 for extent in rest)}
    return all(_moves(copy, gmem, plain_layout(smem), tiler, tile) for tile in first_and_last)


def _moves(copy: TmaCopy, gmem: Layout, smem: Layout, tiler: Any, at: tuple[int, ...]) -> bool:
    coordinates, begin = local_tile(copy.coordinates(gmem), tiler, at)
    identity, corner = local_tile(make_identity_layout(gmem.shape), tiler, at)
    assert isinstance(coordinates, Layout)
    assert isinstance(identity, Layout)
    landed: dict[int, int] = {}
    tensor_map = copy.tensor_map(gmem)
    for block in range(copy.multicast):
        source, start = copy.partition_gmem(coordinates, block)
        target, offset = copy.partition_smem(smem, block)
        for i in range(copy.instructions):
            corner_of_box = add(begin, add(start, source(((0, i), *(0,) * (len(source) - 1)))))
            place = offset + plain_layout(target)(((0, i), *(0,) * (len(target) - 1)))
            landed |= {place + step: index for step, index in enumerate(_box(tensor_map, corner_of_box))}
    expected = {smem(i): _index(add(corner, identity(i)), gmem.shape, gmem.stride) for i in range(smem.size)}
    return landed == expected


def _box(tensor_map: TensorMap, corner: Any) -> list[int]:
    """The indices of the elements of a box in the order in which they lie in shared memory."""
    first = padded(corner, len(tensor_map.dims))
    strides = (1, *(stride * 8 // tensor_map.bits for stride in tensor_map.strides))
    indices: list[int] = []
    for reverse in cartesian(*(range(extent) for extent in reversed(tensor_map.box))):
        at = [c + step for c, step in zip(first, reversed(reverse), strict=True)]
        inside = all(0 <= c < extent for c, extent in zip(at, tensor_map.dims, strict=True))
        indices.append(sum(c * d for c, d in zip(at, strides, strict=True)) if inside else _OUTSIDE)
    return indices


def padded(coord: Any, rank: int) -> list[Any]:
    """A coordinate with zeros for the last dimensions that it does not mention."""
    values = [*flatten_to_tuple(coord)]
    return values + [0] * (rank - len(values))


def _index(coord: Any, shape: Any, stride: Any) -> int:
    """Where the element at a coordinate lies; outside, if it is not one of the tensor. Modes that it does not mention
    are 0.
    """
    if not isinstance(shape, tuple):
        return coord * stride if coord < shape else _OUTSIDE
    coords = cast(Coords, coord if isinstance(coord, tuple) else (coord,))
    indices = [_index(*mode) for mode in zip(coords, cast(Coords, shape), stride, strict=False)]
    return _OUTSIDE if _OUTSIDE in indices else sum(indices)
