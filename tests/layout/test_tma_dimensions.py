# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The dimensions of tensor maps: one for each mode, or shared by several, of tensors with up to seven modes."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tilefold.base.errors import Code, LayoutError
from tilefold.layout.algebra.core import Layout, make_ordered_layout
from tilefold.layout.atoms.tma import TmaFacts
from tilefold.layout.tma.tma_copy import TmaCopy, make_tma_copy

from tests.oracle.tma_model import moves_tiles

LOAD = TmaFacts(loads=True, multicast=False, reduction="")


@st.composite
def _tensors(draw: st.DrawFn) -> tuple[Layout, tuple[int, ...]]:
    """A tensor whose last mode is contiguous, and a tile; many of its modes are contiguous or covered by the tile."""
    rank = draw(st.integers(1, 7))
    tile = (*(draw(st.sampled_from([1, 1, 1, 2])) for _ in range(rank - 1)), draw(st.sampled_from([4, 8])))
    shape = tuple(extent * draw(st.integers(1, 2)) + (extent > 1) * draw(st.integers(0, 1)) for extent in tile)
    stride, step = [0] * rank, 1
    for mode in [rank - 1, *draw(st.permutations(range(rank - 1)))]:
        stride[mode] = step
        step *= shape[mode] + draw(st.sampled_from([0, 0, 0, 1]))
    return Layout(shape, tuple(stride)), tile


def _copy(gmem: Layout, tile: tuple[int, ...], *, merge: bool) -> TmaCopy | None:
    """The copies of 16-byte elements; None for what is refused."""
    smem: Any = make_ordered_layout(tile, tuple(reversed(range(len(tile)))))
    try:
        copy = make_tma_copy(LOAD, gmem, smem, tile, val_bits=128, merge=merge)
        copy.tensor_map()
    except LayoutError as error:
        if error.code not in (Code.TMA_BOX.id, Code.TENSOR_MAP.id):
            raise
        return None
    assert moves_tiles(copy, smem, tile)
    return copy


@given(_tensors())
def test_every_element_lands_in_its_place(case: tuple[Layout, tuple[int, ...]]) -> None:
    gmem, tile = case
    apart, merged = (_copy(gmem, tile, merge=merge) for merge in (False, True))
    if len(tile) <= 5:
        assert apart is not None
        assert not apart.shared_dimensions
        assert not apart.outermost_steps
    elif merged is not None:
        assert merged.shared_dimensions == tuple(merged.outermost_steps) or not merged.shared_dimensions


@pytest.mark.parametrize(
    ("tile", "stride", "box"),
    [
        ((1, 1, 1, 1, 1, 8), (1 << 14, 1 << 12, 1 << 10, 1 << 8, 1 << 6, 1), (8, 1, 1, 1, 1)),
        ((1, 1, 1, 1, 2, 8), (1 << 14, 1 << 12, 1 << 10, 1 << 8, 1 << 6, 1), (8, 2, 1, 1, 1)),
        ((2, 2, 2, 2, 1, 8), (1 << 14, 1 << 12, 1 << 10, 1 << 8, 1 << 16, 1), (8, 2, 2, 2, 2)),
        # the last dimension is for modes 0 and 4; neighbours along mode 0 are not those of the dimension
        ((2, 2, 2, 2, 1, 8), (1 << 14, 1 << 12, 1 << 10, 1 << 8, 1 << 6, 1), None),
    ],
)
def test_the_last_dimension_stands_for_modes_beyond_the_fifth(
    tile: tuple[int, ...], stride: tuple[int, ...], box: tuple[int, ...] | None
) -> None:
    copy = _copy(Layout((4, 4, 4, 4, 4, 8), stride), tile, merge=False)
    assert (None if copy is None else copy.box) == box
