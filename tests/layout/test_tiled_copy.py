# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tiled copies and partitions: threads cover a tile exactly, and each part is where the algebra says."""

from typing import Any

import pytest
import tilefold.layout as cute
from hypothesis import given
from hypothesis import strategies as st
from tilefold.base.errors import Code, LayoutError
from tilefold.layout.algebra.core import ComposedLayout, Layout, make_layout, make_row_major_layout
from tilefold.layout.algebra.product import raked_product
from tilefold.layout.atoms.bulk_copy import cp_async
from tilefold.layout.atoms.ldmatrix import ldmatrix
from tilefold.layout.atoms.universal import universal_copy
from tilefold.layout.tiling.partition import local_partition, local_tile, outer_partition
from tilefold.layout.tiling.tiled_copy import (
    TiledCopy,
    make_cotiled_copy,
    make_tiled_copy,
    make_tiled_copy_D,
    make_tiled_copy_S,
    make_tiled_copy_tv,
)

from tests.oracle.record import RunTimeInt


def elements(layout: Any, offset: int) -> list[int]:
    return [offset + layout(i) for i in range(cute.size(layout))]


@st.composite
def tiled_copies(draw: st.DrawFn) -> TiledCopy:
    """A copy by 16-bit values with vectors along one axis, in a random arrangement."""
    vector = draw(st.sampled_from([1, 2, 4, 8]))
    threads = draw(st.sampled_from([(4, 8), (8, 4), (32, 1), (2, 4)]))
    order = draw(st.permutations([0, 1]))
    values: Layout = make_layout((1, vector)) if draw(st.booleans()) else make_layout((vector, 1))
    atom = universal_copy(16 * vector).with_value_bits(16)
    return make_tiled_copy(atom, cute.make_ordered_layout(threads, tuple(order)), values)


@given(tiled_copies(), st.sampled_from([(1, 1), (2, 1), (2, 3)]), st.booleans())
def test_threads_cover_a_tensor_exactly_once(copy: TiledCopy, tiles: tuple[int, int], row_major: bool) -> None:
    tile: Any = copy.tiler
    shape = tuple(t * n for t, n in zip(tile, tiles, strict=True))
    tensor = make_row_major_layout(shape) if row_major else make_layout(shape)
    for partition in (copy.partition_S, copy.partition_D):
        covered = [e for t in range(copy.threads) for e in elements(*partition(tensor, t))]
        assert sorted(covered) == list(range(tensor.size))


@given(tiled_copies(), st.integers(0, 31), st.booleans())
def test_a_dynamic_thread_index_finds_the_same_elements(copy: TiledCopy, thread: int, swizzled: bool) -> None:
    thread %= copy.threads
    plain = make_row_major_layout((64, 64))
    tensor = ComposedLayout(cute.Swizzle(3, 3, 3), 0, plain) if swizzled else plain
    layout, start = copy.partition_S(tensor, thread)
    dynamic, dynamic_start = copy.partition_S(tensor, RunTimeInt(thread))
    found = [getattr(e, "value", e) for e in (dynamic_start + dynamic(i) for i in range(cute.size(dynamic)))]
    assert found == elements(layout, start)


def test_the_known_example_of_a_vectorised_copy() -> None:
    atom = universal_copy(128).with_value_bits(16)
    copy = make_tiled_copy(atom, make_layout((8, 4)), make_layout((8, 1)))
    assert (str(copy.layout_tv), copy.tiler) == ("(32,8):(8,1)", (64, 4))
    layout, start = copy.partition_S(Layout((128, 32), (1, 1024)), 1)
    assert (str(layout), start) == ("((8,1),2,8):((1,0),64,4096)", 8)
    assert make_tiled_copy_tv(atom, copy.layout_tv, copy.tiler) == copy


def test_ldmatrix_threads_read_rows_and_receive_fragments() -> None:
    fragment_tv = Layout(((4, 8), (2, 4)), ((64, 1), (32, 8)))  # to places in a tile of 32 rows and 8 columns
    copy = make_tiled_copy_tv(ldmatrix(4).with_value_bits(16), fragment_tv, (32, 8))
    tensor = make_row_major_layout((32, 8))
    for thread in range(32):
        assert elements(*copy.partition_S(tensor, thread)) == list(range(8 * thread, 8 * thread + 8))
        first = 8 * (thread // 4) + 2 * (thread % 4)
        assert elements(*copy.partition_D(tensor, thread)) == [first + 64 * m + i for m in range(4) for i in range(2)]


def test_retile_keeps_the_registers() -> None:
    """The fragment of one copy, seen as that of another over the same threads and tile."""
    threads, values = make_layout((8, 4)), make_layout((8, 1))
    wide = make_tiled_copy(universal_copy(128).with_value_bits(16), threads, values)
    narrow = make_tiled_copy_D(universal_copy(32).with_value_bits(16), wide)
    tensor = make_layout((128, 32))
    part, start = wide.partition_D(tensor, 3)
    fragment = make_layout(part.shape)
    retiled = narrow.retile(fragment)
    narrow_part, narrow_start = narrow.partition_D(tensor, 3)
    place = {element: fragment(i) for i, element in enumerate(elements(part, start))}
    assert [place[e] for e in elements(narrow_part, narrow_start)] == elements(retiled, 0)
    assert make_tiled_copy_S(wide.atom, wide).threads == 32


def test_cotiled_copies_give_every_thread_its_addresses() -> None:
    data = make_row_major_layout((16, 32))
    tv = Layout((16, 8), (8, 1))
    copy = make_cotiled_copy(universal_copy(128).with_value_bits(16), tv, data)
    for thread in range(16):
        found = elements(*copy.partition_S(data, thread))
        assert found[:8] == [tv(thread, v) for v in range(8)]
    with pytest.raises(LayoutError) as caught:
        make_cotiled_copy(universal_copy(32).with_value_bits(16), Layout((2, 2), (1, 64)), Layout(32, 1))
    assert caught.value.code == Code.NOT_IN_DATA_LAYOUT.id


_ATOM = universal_copy(128).with_value_bits(16)


@pytest.mark.parametrize(
    ("make", "code"),
    [
        (
            lambda: make_tiled_copy(ldmatrix(1).with_value_bits(16), make_layout((16, 1)), Layout(2, 1)),
            "E0305",
        ),
        (lambda: make_tiled_copy(_ATOM, make_layout((8, 4)), make_layout((4, 1))), "E0306"),
        (
            lambda: make_tiled_copy(universal_copy(32).with_value_bits(64), make_layout(32), Layout(1, 0)),
            "E0303",
        ),
        (lambda: make_tiled_copy(cp_async("cg", 8), make_layout(32), make_layout(64)), "E0304"),
        (lambda: make_tiled_copy(_ATOM, Layout((8, 4), (1, 9)), make_layout((8, 1))), "E0313"),
        (
            lambda: make_tiled_copy(_ATOM, make_layout((8, 4)), make_layout((8, 1))).partition_S(Layout(64, 1), 0),
            "E0307",
        ),
    ],
)
def test_tilings_that_do_not_fit_are_refused(make: Any, code: str) -> None:
    with pytest.raises(LayoutError) as caught:
        make()
    assert caught.value.code == code


@pytest.mark.parametrize(
    ("threads", "values"),
    [(Layout(128, 8), Layout(8, 1)), (Layout((8, 4), (1, 16)), make_layout((8, 1)))],
)
def test_values_fill_the_gaps_of_a_thread_layout(threads: Layout, values: Layout) -> None:
    """CuTe's make_tiled_copy inverts the product of both, so an index of the tile counts threads first."""
    copy = make_tiled_copy(universal_copy(16).with_value_bits(16), threads, values)
    tile = raked_product(threads, values)
    for index in range(tile.size):
        thread, value = tile(index) % threads.size, tile(index) // threads.size
        assert copy.layout_tv(thread, value) == index


@given(st.integers(0, 3), st.integers(0, 3), st.booleans())
def test_local_tile_is_the_tile_at_its_coordinate(m: int, k: int, row_major: bool) -> None:
    tensor = make_row_major_layout((128, 64)) if row_major else make_layout((128, 64))
    layout, start = local_tile(tensor, (32, 16), (m, k))
    for i, j in ((0, 0), (5, 3), (31, 15)):
        assert start + layout(i, j) == tensor(32 * m + i, 16 * k + j)
    projected, projected_start = local_tile(tensor, (32, 99, 16), (m, 7, k), (1, None, 1))
    assert (projected, projected_start) == (layout, start)
    row, row_start = local_tile(tensor, (32, 16), (m, None))
    assert row_start + row((1, 2, k)) == start + layout(1, 2)


@pytest.mark.parametrize("threads", [make_layout((8, 4)), make_row_major_layout((8, 4))])
def test_local_partition_gives_each_thread_its_elements(threads: Layout) -> None:
    tensor = make_layout((32, 16))
    covered: list[int] = []
    for m in range(8):
        for n in range(4):
            layout, start = local_partition(tensor, threads, threads(m, n))
            assert start == tensor(m, n)
            covered += elements(layout, start)
    assert sorted(covered) == list(range(tensor.size))


def test_coordinates_with_too_many_modes_are_refused() -> None:
    for f in (local_tile, outer_partition):
        with pytest.raises(LayoutError) as caught:
            f(make_layout((32, 16)), (8, 4), (0, 0, 0))
        assert caught.value.code == Code.RANK_MISMATCH.id
