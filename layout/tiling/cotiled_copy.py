# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tiled copies from a map of threads and values to memory (CuTe's make_cotiled_copy)."""

from typing import Any

from ...base.errors import Code, LayoutError
from ..algebra.coalesce import coalesce, filter_layout
from ..algebra.compose import composition
from ..algebra.core import Layout, join, make_layout
from ..algebra.inttuple import product_each
from ..algebra.inverse import left_inverse
from ..atoms.copy_atom import CopyAtom
from .tiled_copy import TiledCopy

_UNIT = Layout(1, 0)


def make_cotiled_copy(atom: CopyAtom, atom_tv: Layout, data: Layout) -> TiledCopy:
    """The tiled copy in which `atom_tv` maps (thread, value) to an index of the data that `data` lays out.

    Raises `LayoutError` (E0308) if values have indices that `data` does not take.
    """
    inverse = join((left_inverse(data), _UNIT))
    coords = composition(inverse, atom_tv)
    reached = coalesce(composition(join((data, _UNIT)), coords[1]))
    if reached != coalesce(atom_tv[1]):
        raise LayoutError(
            Code.NOT_IN_DATA_LAYOUT, f"the values {atom_tv[1]} address elements that {data} does not hold"
        )
    shape = product_each(data.shape)
    return TiledCopy(atom, *tile_of(shape, coords))


def tile_of(shape: tuple[Any, ...], coords: Layout) -> tuple[Layout, tuple[Any, ...]]:
    """The (thread, value) layout and the tiler of the part of `shape` that `coords`, (thread, value) to
    place, visits.
    """
    tiler = tuple([filter_layout(composition(Layout(shape, _unit(i, len(shape))), coords)) for i in range(len(shape))])
    tile = composition(make_layout(shape), tiler)
    return composition(left_inverse(tile), coords), tiler


def _unit(axis: int, axes: int) -> tuple[int, ...]:
    return tuple([int(i == axis) for i in range(axes)])
