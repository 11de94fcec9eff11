# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Errors of the algebra: what they say, their codes, and that hostile layouts cannot hang it."""

import contextlib
import math
from collections.abc import Callable
from operator import mul

import pytest
import tilefold.layout as cute
from hypothesis import given
from hypothesis import strategies as st
from tilefold.base.errors import Code, LayoutError
from tilefold.layout.algebra.core import Layout, make_identity_layout
from tilefold.layout.algebra.integers import Unknown
from tilefold.layout.algebra.inttuple import transform_leaves
from tilefold.layout.text.layouts import parse_layout, to_text

from tests.layout.strategies import gapped_layouts
from tests.work import calls


def test_codes_are_unique_and_described() -> None:
    codes = [code.id for code in Code]
    assert len(set(codes)) == len(codes)
    assert len(Code.__members__) == len(codes)
    assert all(code.id[0] == "E" and code.summary for code in Code)


@pytest.mark.parametrize(
    ("make", "code", "words"),
    [
        (
            lambda: cute.composition(Layout((4, 6), (1, 8)), Layout(3, 3)),
            Code.STRIDE_DIVISIBILITY,
            ["mode 0", "3", "4"],
        ),
        (
            lambda: cute.composition(Layout((4, 6), (1, 8)), Layout(6, 1)),
            Code.SHAPE_DIVISIBILITY,
            ["mode 0", "4", "6"],
        ),
        (
            lambda: cute.composition(Layout((3, 2), (0, 1)), Layout((2, 2), (1, 2))),
            Code.MODES_CARRY,
            ["(2,2):(1,2)"],
        ),
        (
            lambda: cute.complement(Layout((4, 4), (1, 2)), 64),
            Code.NOT_INJECTIVE,
            ["(2,0) and (0,1)", "both map to 2"],
        ),
        (lambda: cute.complement(Layout((2, 2), (Unknown(), 2)), 64), Code.DYNAMIC_UNSUPPORTED, ["?"]),
        (lambda: cute.left_inverse(Layout((2, 3), (4, 7))), Code.STRIDE_DIVISIBILITY, ["7", "4"]),
        (lambda: cute.left_inverse(Layout((4, 2), (2, -1))), Code.BAD_ARGUMENT, ["negative"]),
        (lambda: cute.append(Layout(4, 1), 1 << 40), Code.RESULT_TOO_LARGE, ["4096"]),
        (lambda: cute.upcast(make_identity_layout((4, 4)), 3), Code.BAD_ARGUMENT, ["1@0"]),
        (lambda: cute.make_layout((4, 0)), Code.EXTENT_NOT_POSITIVE, ["(4,0)"]),
        (lambda: cute.make_layout((4, 2), (1, (2,))), Code.PROFILE_MISMATCH, ["(4,2)", "(1,(2))"]),
        (lambda: cute.make_layout(Layout(4, 1), 3), Code.BAD_ARGUMENT, ["3"]),
        (lambda: Layout((4, 2), (1, 4))((1, 2, 3)), Code.PROFILE_MISMATCH, ["(1,2,3)", "(4,2)"]),
        (lambda: Layout((4, 2), (1, 4))[2], Code.MODE_OUT_OF_RANGE, ["0 to 1", "2"]),
        (lambda: cute.take(Layout((4, 2), (1, 4)), 1, 1), Code.MODE_OUT_OF_RANGE, ["1 to 0"]),
        (lambda: cute.logical_divide(Layout(4, 1), (2, 2)), Code.RANK_MISMATCH, ["2", "4:1"]),
        (lambda: cute.zipped_divide(Layout((4, 4), (1, 4)), (None, 2)), Code.RANK_MISMATCH, ["underscore"]),
        (lambda: cute.upcast(Layout((4, 4), (1, 6)), 4), Code.STRIDE_DIVISIBILITY, ["6", "4"]),
        (lambda: cute.upcast(Layout(4, 1), 0), Code.BAD_ARGUMENT, ["0 times"]),
        (lambda: cute.upcast(parse_layout("S<1,0,3> o 8 o 3:2"), 0), Code.BAD_ARGUMENT, ["0 times"]),
        (lambda: cute.downcast(Layout(4, 2), 2), Code.NO_ADJACENT_ELEMENTS, ["4:2"]),
        (lambda: cute.tile_to_shape(Layout((4, 8), (8, 1)), (6, 8)), Code.SHAPE_DIVISIBILITY, ["(6,8)"]),
        (lambda: cute.recast_layout(Layout(4, 1), 0, 8), Code.BAD_ARGUMENT, ["0 bits"]),
        (lambda: cute.Swizzle(3, 0, 1), Code.SWIZZLE_INVALID, ["S<3,0,1>"]),
        (lambda: cute.make_swizzle(0b101, 0b1010000), Code.SWIZZLE_INVALID, ["0x5"]),
    ],
)
def test_errors_name_what_fails(make: Callable[[], object], code: Code, words: list[str]) -> None:
    with pytest.raises(LayoutError) as caught:
        make()
    assert caught.value.code == code.id
    for word in words:
        assert word in str(caught.value)


def test_hostile_layouts_are_answered_quickly() -> None:
    many = 4096
    wild = Layout((2,) * many, tuple(3 * 5**i % 2**62 + 1 for i in range(many)))
    flat = Layout((2,) * many, tuple(2 * i + 1 for i in range(many)))
    equal = Layout((3,) * many, (1,) * many)
    operations: list[Callable[[Layout], object]] = [
        lambda a: cute.coalesce(a),
        lambda a: cute.complement(a, 1 << 62),
        lambda a: cute.composition(a, Layout((2,) * many, (1,) * many)),
        lambda a: cute.logical_divide(a, a),
        lambda a: cute.logical_product(a, a),
        lambda a: cute.right_inverse(a),
        lambda a: cute.left_inverse(a),
        lambda a: cute.make_layout_like(a),
        lambda a: cute.make_fragment_like(a),
        lambda a: cute.max_common_vector(a, a),
        lambda a: cute.max_alignment(a),
        lambda a: a(12345),
    ]
    for layout in (wild, flat, equal):
        for operation in operations:
            with contextlib.suppress(LayoutError):
                assert calls(lambda operation=operation, layout=layout: operation(layout)) < 500_000


@given(st.data())
def test_integers_beyond_32_bits_are_exact(data: st.DataObject) -> None:
    """Strides up to 2^50 and extents up to 2^10: every result is the exact integer."""
    extents = data.draw(st.lists(st.sampled_from([3, 7, 64, 1000]), min_size=1, max_size=4))
    strides = [data.draw(st.integers(1 << 31, 1 << 50)) for _ in extents]
    layout = Layout(tuple(extents), tuple(strides))
    last = [s - 1 for s in extents]
    assert cute.cosize(layout) == 1 + sum(map(mul, last, strides)) > 1 << 31
    place = data.draw(st.integers(0, math.prod(extents) - 1))
    coord = [place // math.prod(extents[:i]) % s for i, s in enumerate(extents)]
    assert layout(place) == layout(tuple(coord)) == sum(map(mul, coord, strides))
    assert to_text(cute.coalesce(layout)) == to_text(parse_layout(to_text(cute.coalesce(layout))))


@given(gapped_layouts(3, 2), st.integers(31, 50))
def test_laws_hold_for_scaled_layouts(layout: Layout, bits: int) -> None:
    """All strides times 2^bits: composition, complement and inverse are those of the layout, scaled."""
    scale = 1 << bits
    large = Layout(layout.shape, transform_leaves(lambda d: d * scale, layout.stride))
    assert [large(i) for i in range(large.size)] == [layout(i) * scale for i in range(layout.size)]
    composed: Layout = cute.composition(Layout(1 << 62, scale), layout)
    assert composed == large or cute.coalesce(composed) == cute.coalesce(large)
    rest = cute.complement(large, layout.size * scale)
    assert len({a + b for a in map(large, range(large.size)) for b in map(rest, (0, 1, rest.size - 1))}) >= large.size
    assert all(rest(i) == i for i in range(0, min(rest.size, 64))) or large.size == 1
    with contextlib.suppress(LayoutError):
        inverse = cute.left_inverse(large)
        assert [inverse(large(i)) for i in range(large.size)] == list(range(large.size))
