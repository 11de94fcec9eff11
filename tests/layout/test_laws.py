# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The laws of the algebra, at every index."""

import math
from collections.abc import Callable
from typing import Any

import pytest
import tilefold.layout as cute
from hypothesis import assume, given
from hypothesis import strategies as st
from tilefold.base.errors import Code, LayoutError
from tilefold.layout.algebra.coalesce import coalesce_under
from tilefold.layout.algebra.coordinates import crd2crd, crd2idx_in_shape, idx2crd
from tilefold.layout.algebra.core import ComposedLayout, Layout
from tilefold.layout.algebra.inttuple import flatten_to_tuple, unflatten
from tilefold.layout.text.layouts import parse_layout

from tests.layout.strategies import (
    compact_layouts,
    coordinates,
    gapped_layouts,
    layouts,
    shapes,
    two_numberings,
)

Data = st.DataObject
Pair = tuple[int, int]
UNDEFINED = {"E0203", "E0204", "E0214"}


def values(layout: Layout) -> list[int]:
    return [layout(i) for i in range(layout.size)]


@given(layouts(), st.one_of(gapped_layouts(3), layouts(3)))
def test_composition_is_the_composed_function(a: Layout, b: Layout) -> None:
    try:
        result = cute.composition(a, b)
    except LayoutError as error:
        assert error.code in UNDEFINED  # noqa: PT017
        return
    assert cute.size(result) == b.size
    assert all(result(i) == a(b(i)) for i in range(b.size) if b(i) < a.size)


@given(compact_layouts(), st.data())
def test_composition_with_tiles_that_divide_is_accepted(a: Layout, data: Data) -> None:
    divisors = [n for n in range(1, a.size + 1) if a.size % n == 0]
    first: Layout = cute.coalesce(a)[0]
    tile = data.draw(st.sampled_from([n for n in divisors if first.size % n == 0]))
    assert values(cute.composition(a, tile)) == values(a)[:tile]


@given(layouts(), gapped_layouts(2), gapped_layouts(2))
def test_composition_is_associative(a: Layout, b: Layout, c: Layout) -> None:
    try:
        left = cute.composition(cute.composition(a, b), c)
        right = cute.composition(a, cute.composition(b, c))
    except LayoutError:
        assume(False)
        return
    for i in range(c.size):
        if c(i) < b.size and b(c(i)) < a.size:
            assert left(i) == right(i)


@given(layouts())
def test_coalesce_keeps_the_function_with_the_fewest_modes(layout: Layout) -> None:
    result = cute.coalesce(layout)
    assert values(result) == values(layout)
    assert cute.depth(result) <= 1
    assert cute.coalesce(result) == result


@given(layouts())
def test_coalesce_by_mode_keeps_every_mode(layout: Layout) -> None:
    result = cute.coalesce(layout, (1,) * len(layout))
    assert [values(m) for m in result] == [values(m) for m in layout]


@given(layouts())
def test_filter_keeps_the_set_of_indices(layout: Layout) -> None:
    result = cute.filter(layout)
    assert set(values(result)) == set(values(layout))
    assert cute.nullspace(layout).size * result.size == layout.size


@given(layouts())
def test_nullspace_maps_to_zero(layout: Layout) -> None:
    kernel = cute.nullspace(layout)
    assert {layout(kernel(i)) for i in range(kernel.size)} == {0}


@given(gapped_layouts(), st.integers(1, 4))
def test_complement_is_disjoint_and_complete(layout: Layout, times: int) -> None:
    plain = cute.filter(layout)
    total = max(m.shape * max(m.stride, 1) for m in plain)
    assume(total * times <= 1 << 12)
    rest = cute.complement(layout, total * times)
    sums = [x + y for x in values(plain) for y in values(rest)]
    assert sorted(sums) == list(range(total * times))
    assert values(rest) == sorted(values(rest))


@given(gapped_layouts())
def test_right_inverse(layout: Layout) -> None:
    inverse = cute.right_inverse(layout)
    assert all(layout(inverse(i)) == i for i in range(inverse.size))


def _swizzled(bits: int, base: int, extra: int, backwards: bool, outer: Layout) -> cute.ComposedLayout:
    shift = bits + extra
    return cute.ComposedLayout(cute.Swizzle(bits, base, -shift if backwards else shift), 0, outer)


def _plain(text: str) -> Layout:
    layout = parse_layout(text)
    assert isinstance(layout, Layout)
    return layout


@given(gapped_layouts(), st.integers(0, 3), st.integers(0, 3), st.integers(0, 2), st.booleans())
def test_inverses_of_swizzled_layouts(outer: Layout, bits: int, base: int, extra: int, backwards: bool) -> None:
    """At each index, or there is none."""
    layout = _swizzled(bits, base, extra, backwards, outer)
    right, left = _inverse(cute.right_inverse, layout), _inverse(cute.left_inverse, layout)
    if right is not None:
        assert all(layout(right(i)) == i and right(i) < layout.size for i in range(right.size))
    if left is not None:
        assert all(left(layout(i)) == i for i in range(layout.size))


def _inverse(function: Callable[[Any], Any], layout: cute.ComposedLayout) -> Any:
    """An inverse; None where it is refused."""
    try:
        return function(layout)
    except LayoutError as error:
        if error.code is not Code.COMPOSED_UNSUPPORTED or "is not a layout" not in error.message:
            raise
        return None


@pytest.mark.parametrize("function", [cute.right_inverse, cute.left_inverse])
def test_a_swizzle_of_bits_that_no_index_has_cannot_be_inverted(function: Callable[..., object]) -> None:
    with pytest.raises(LayoutError, match=r"S<1,1,2> moves the index 1 by bits") as caught:
        function(cute.ComposedLayout(cute.Swizzle(1, 1, 2), 0, _plain("(2,4):(4,1)")))
    assert caught.value.code == "E0211"


@pytest.mark.parametrize("bits", [1, 2, 3])
@pytest.mark.parametrize("outer", ["(8,64):(64,1)", "(64,8):(1,64)", "((8,2),(64,2)):((64,1024),(1,512))"])
def test_layouts_of_shared_memory_have_whole_inverses(bits: int, outer: str) -> None:
    layout = cute.ComposedLayout(cute.Swizzle(bits, 3, 3), 0, _plain(outer))
    right, left = cute.right_inverse(layout), cute.left_inverse(layout)
    assert right.size == left.size == layout.size
    assert all(layout(right(i)) == left(layout(i)) == i for i in range(layout.size))


@given(compact_layouts())
def test_right_inverse_of_a_bijection_is_whole(layout: Layout) -> None:
    assert cute.right_inverse(layout).size == layout.size


@given(gapped_layouts())
def test_left_inverse(layout: Layout) -> None:
    inverse = cute.left_inverse(layout)
    assert all(inverse(layout(i)) == i for i in range(layout.size))


@given(two_numberings())
def test_max_common_vector_elements_are_contiguous_in_both(both: tuple[Layout, Layout]) -> None:
    a, b = both
    common = cute.max_common_layout(a, b)
    assert [a(common(i)) for i in range(common.size)] == list(range(common.size))
    assert [b(common(i)) for i in range(common.size)] == list(range(common.size))
    assert cute.max_common_vector(a, b) == common.size


@given(gapped_layouts(), st.integers(1, 6))
def test_divide_by_an_extent_counts_in_tiles(layout: Layout, tile: int) -> None:
    assume(layout.size % tile == 0)
    try:
        result = cute.logical_divide(layout, tile)
    except LayoutError as error:
        assert error.code in UNDEFINED  # noqa: PT017
        return
    assert [result((i, j)) for j in range(layout.size // tile) for i in range(tile)] == values(layout)


@given(st.lists(st.sampled_from([2, 4, 8]), min_size=2, max_size=3), st.data())
def test_divides_by_mode_are_one_function_in_four_arrangements(extents: list[int], data: Data) -> None:
    layout = cute.make_row_major_layout(tuple(extents))
    tiler = tuple(data.draw(st.sampled_from([n for n in (1, 2, 4, 8) if n <= e])) for e in extents)
    rest = tuple(e // t for e, t in zip(extents, tiler, strict=True))
    zipped = cute.zipped_divide(layout, tiler)
    logical = cute.logical_divide(layout, tiler)
    tiled, flat = cute.tiled_divide(layout, tiler), cute.flat_divide(layout, tiler)
    for i in range(cute.size(tiler)):
        for j in range(cute.size(rest)):
            inside, outside = idx2crd(i, tiler), idx2crd(j, rest)
            want = layout(tuple(x + t * y for x, t, y in zip(inside, tiler, outside, strict=True)))
            assert zipped(inside, outside) == want
            assert logical(tuple(zip(inside, outside, strict=True))) == want
            assert tiled((inside, *outside)) == want
            assert flat((*inside, *outside)) == want


@given(gapped_layouts(2), compact_layouts(2))
def test_product_repeats_the_block_without_overlap(block: Layout, tiler: Layout) -> None:
    try:
        result = cute.logical_product(block, tiler)
    except LayoutError as error:
        assert error.code in UNDEFINED  # noqa: PT017
        return
    starts = values(result[1])
    assert [result((i, j)) for j in range(tiler.size) for i in range(block.size)] == [
        s + v for s in starts for v in values(block)
    ]
    assert len(set(values(result))) == result.size
    # The copies stand in the order that the tiler gives them.
    assert sorted(range(tiler.size), key=starts.__getitem__) == sorted(range(tiler.size), key=tiler)


@given(compact_layouts(2), compact_layouts(2))
def test_blocked_and_raked_products_are_the_same_copies(block: Layout, tiler: Layout) -> None:
    try:
        blocked, raked = cute.blocked_product(block, tiler), cute.raked_product(block, tiler)
    except LayoutError:
        return
    assert sorted(values(blocked)) == sorted(values(raked)) == list(range(block.size * tiler.size))
    for i, (b, r) in enumerate(zip(blocked, raked, strict=True)):
        assert [b((x, y)) for y in range(b[1].size) for x in range(b[0].size)] == [
            r((y, x)) for y in range(r[0].size) for x in range(r[1].size)
        ], i


@given(st.sampled_from([(8, 8), (4, 16)]), st.sampled_from([(16, 32), (64, 16)]), st.permutations([0, 1]))
def test_tile_to_shape_fills_the_shape(block: Pair, shape: Pair, order: list[int]) -> None:
    result = cute.tile_to_shape(cute.make_row_major_layout(block), shape, tuple(order))
    assert tuple(m.size for m in result) == shape
    assert sorted(values(result)) == list(range(shape[0] * shape[1]))


@given(compact_layouts(), st.sampled_from([1, 2, 4]))
def test_upcast_undoes_downcast(layout: Layout, n: int) -> None:
    try:
        narrow = cute.downcast(layout, n)
    except LayoutError as error:
        assert error.code == "E0212"  # noqa: PT017
        return
    assert values(cute.coalesce(cute.upcast(narrow, n))) == values(layout)


@given(layouts(), st.sampled_from([2, 3, 4]))
def test_downcast_gives_the_parts_of_each_element(layout: Layout, n: int) -> None:
    try:
        narrow = cute.downcast(layout, n)
    except LayoutError as error:
        assert error.code == "E0212"  # noqa: PT017
        return
    assert sorted(values(narrow)) == sorted(n * index + part for index in values(layout) for part in range(n))


@pytest.mark.parametrize(("offset", "is_defined"), [(0, True), (32, True), (8, False)])
def test_wide_elements_begin_at_an_offset_that_they_divide(offset: int, is_defined: bool) -> None:
    """Units of 16 bytes of a swizzled layout of 4 bits: an offset within one has no number."""
    layout = ComposedLayout(cute.Swizzle(3, 3, 3), offset, cute.Layout((64, 64), (64, 1)))
    if is_defined:
        assert cute.recast_layout(layout, 4, 128).offset == offset // 32
        return
    with pytest.raises(LayoutError, match="do not begin at the offset 8") as caught:
        cute.recast_layout(layout, 4, 128)
    assert caught.value.code == "E0203"


@given(gapped_layouts(), st.sampled_from([2, 4]))
def test_downcast_undoes_upcast(layout: Layout, n: int) -> None:
    """The elements of a layout in whole groups are those of the groups."""
    try:
        wide = cute.upcast(layout, n)
        narrow = cute.downcast(wide, n)
    except LayoutError as error:
        assert error.code in ("E0203", "E0212")  # noqa: PT017
        return
    groups = {index // n for index in values(layout)}
    assert {index // n for index in values(narrow)} == groups
    assert len(values(narrow)) == len(set(values(narrow)))


def ordered(shape: list[int], order: list[int]) -> list[int]:
    """What an order makes of each coordinate, first mode fastest: a step is as long as all modes that come before."""
    steps = [math.prod(s for s, other in zip(shape, order, strict=True) if other < own) for own in order]
    numbers = [0]
    for extent, step in zip(shape, steps, strict=True):
        numbers = [number + step * i for i in range(extent) for number in numbers]
    return numbers


@given(shapes(), st.data())
def test_an_order_says_which_modes_come_before(shape: Any, data: Data) -> None:
    """As in CuTe: modes of one number in the order begin at the same stride, and share indices."""
    flat = [int(extent) for extent in flatten_to_tuple(shape)]
    order = data.draw(st.lists(st.integers(0, 3), min_size=len(flat), max_size=len(flat)))
    made = cute.make_ordered_layout(shape, unflatten(order, shape))
    assert values(made) == ordered(flat, order)
    numbers = [own for own, extent in zip(order, flat, strict=True) if extent > 1]
    assert (len({*values(made)}) == made.size) == (len({*numbers}) == len(numbers))


@given(shapes(3), shapes(3), st.data())
def test_a_nested_mode_of_one_number_is_compact(first: Any, second: Any, data: Data) -> None:
    before, after = data.draw(st.permutations([1, 2]))
    made = cute.make_ordered_layout((first, second), (before, after))
    start = cute.size(cute.make_layout(second)) if before == 2 else 1
    assert values(made[0]) == [start * i for i in range(made[0].size)]


@given(layouts())
def test_layout_like_keeps_the_order_of_strides(layout: Layout) -> None:
    like = cute.make_layout_like(layout)
    assert like.shape == layout.shape
    flat, strides = flatten_to_tuple(layout.shape), flatten_to_tuple(layout.stride)
    kept = [s if d else 1 for s, d in zip(flat, strides, strict=True)]
    assert values(cute.filter(like)) == values(cute.filter(Layout(flat, tuple(
        [math.prod(s for s, other in zip(kept, strides, strict=True) if other < d) if d else 0 for d in strides]
    ))))  # fmt: skip


@given(layouts())
def test_fragment_like_is_contiguous_in_its_first_mode(layout: Layout) -> None:
    """The other modes follow the order of their strides, those of one stride share registers, as in CuTe."""
    fragment = cute.make_fragment_like(layout)
    assert cute.size(fragment) == layout.size
    first = cute.filter(fragment[0])
    assert values(first) == list(range(first.size))
    if len(layout) > 1:
        rest = cute.take(layout, 1, len(layout))
        flat, strides = [flatten_to_tuple(x) for x in (rest.shape, rest.stride)]
        after = ordered([int(s) for s in flat], [int(d) for d in strides])
        assert values(cute.take(fragment, 1, len(fragment))) == [first.size * i for i in after]


@given(shapes(), st.data())
def test_coordinates_and_indices_name_the_same_places(shape: tuple[int, ...], data: Data) -> None:
    layout = cute.make_layout(shape)
    coord = data.draw(coordinates(shape))
    place = crd2idx_in_shape(crd2crd(coord, shape, shape), shape)
    assert layout(coord) == layout(place)
    assert layout(idx2crd(place, shape)) == layout(coord)
    assert cute.make_identity_layout(shape)(place) == idx2crd(place, shape)


@given(layouts(), st.data())
def test_slices_start_where_the_fixed_coordinates_say(layout: Layout, data: Data) -> None:
    assume(isinstance(layout.shape, tuple))
    full = [data.draw(st.integers(0, m.size - 1)) for m in layout]
    keep = [data.draw(st.booleans()) for _ in layout]
    part, start = cute.slice_and_offset(tuple(None if k else c for k, c in zip(keep, full, strict=True)), layout)
    rest = tuple(c for k, c in zip(keep, full, strict=True) if k)
    assert start + part(rest) == layout(tuple(full))


@given(gapped_layouts(3), st.integers(0, 3), st.integers(0, 3), st.integers(1, 4), st.data())
def test_swizzled_slices_address_the_same_elements(outer: Layout, bits: int, base: int, extra: int, data: Data) -> None:
    swizzle = cute.Swizzle(bits, base, bits + extra)
    layout = cute.ComposedLayout(swizzle, 0, outer)
    full = [data.draw(st.integers(0, m.size - 1)) for m in outer]
    keep = [data.draw(st.booleans()) for _ in full]
    coord = tuple(None if k else c for k, c in zip(keep, full, strict=True))
    part, start = cute.slice_and_offset(coord if isinstance(outer.shape, tuple) else coord[0], layout)
    rest = tuple(c for k, c in zip(keep, full, strict=True) if k)
    where = rest if isinstance(outer.shape, tuple) else (full[0] if keep[0] else ())
    assert start + part(where) == layout(tuple(full) if isinstance(outer.shape, tuple) else full[0])


@given(st.integers(0, 4), st.integers(0, 4), st.integers(0, 4), st.booleans())
def test_swizzles_permute_every_block(bits: int, base: int, extra: int, backwards: bool) -> None:
    shift = bits + extra
    swizzle = cute.Swizzle(bits, base, -shift if backwards else shift)
    size = 1 << (bits + base + shift)
    assert sorted(map(swizzle, range(size))) == list(range(size))
    assert all(swizzle(swizzle(x)) == x for x in range(size))


def test_swizzle_of_64_byte_rows_spreads_a_column_over_all_banks() -> None:
    layout = cute.ComposedLayout(cute.Swizzle(3, 3, 3), 0, cute.make_row_major_layout((8, 64)))
    assert {layout(row, 0) % 64 // 8 for row in range(8)} == set(range(8))


@pytest.mark.parametrize("op", [cute.coalesce, cute.flatten, cute.filter])
@given(outer=layouts())
def test_operations_reach_into_composed_layouts(op: Callable[[Any], Any], outer: Layout) -> None:
    composed = cute.ComposedLayout(cute.Swizzle(2, 1, 3), 5, outer)
    assert op(composed) == cute.ComposedLayout(composed.inner, 5, op(outer))


@given(st.one_of(layouts(), gapped_layouts(3)), st.integers(0, 2))
def test_coalescing_under_a_coordinate_keeps_its_index(layout: Layout, depth: int) -> None:
    for coord in (idx2crd(i, layout.shape) for i in range(layout.size)):
        cut = _cut(coord, layout.shape, depth)
        merged = coalesce_under(cut, layout)
        assert merged(cut) == layout(cut)
        assert cute.depth(merged) <= max(cute.depth(layout), 1)


def _cut(coord: Any, shape: Any, depth: int) -> Any:
    """`coord` with one integer for all that lies deeper than `depth`."""
    if depth == 0 or cute.depth(shape) == 0:
        return crd2idx_in_shape(coord, shape)
    return tuple([_cut(c, s, depth - 1) for c, s in zip(coord, shape, strict=True)])
