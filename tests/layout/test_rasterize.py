# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rasterisation is a bijection whose neighbours are neighbours, for integers of every kind."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tilefold.dialects.tile.rasterize import rasterize
from tilefold.layout.algebra.scalars import RunTimeInt, value_of

SIZES = st.integers(1, 12)


@given(SIZES, SIZES, SIZES)
def test_each_tile_is_taken_once_group_after_group(rows: int, columns: int, group: int) -> None:
    tiles = [rasterize(index, rows, columns, group) for index in range(rows * columns)]
    assert sorted(tiles) == [(m, n) for m in range(rows) for n in range(columns)]
    assert tiles == sorted(tiles, key=lambda tile: (tile[0] // group, tile[1], tile[0]))


@given(SIZES, SIZES, SIZES)
def test_integers_of_all_kinds_agree(rows: int, columns: int, group: int) -> None:
    expected = [rasterize(index, rows, columns, group) for index in range(rows * columns)]
    m, n = rasterize(np.arange(rows * columns), rows, columns, group)
    assert list(zip(m.tolist(), np.broadcast_to(n, m.shape).tolist(), strict=True)) == expected
    for index, tile in enumerate(expected):
        dynamic = rasterize(RunTimeInt(index), RunTimeInt(rows), RunTimeInt(columns), group)
        assert tuple(map(value_of, dynamic)) == tile
