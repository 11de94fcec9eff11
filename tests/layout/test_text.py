# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Layout text: round trips, positions of mistakes, and limits on what is not trusted."""

import pytest
import tilefold.layout as cute
from hypothesis import given
from hypothesis import strategies as st
from tilefold.base.errors import Code, LayoutError, LayoutSyntaxError
from tilefold.layout.algebra.core import ComposedLayout, Layout
from tilefold.layout.algebra.integers import ScaledBasis, Unknown
from tilefold.layout.text.layouts import (
    parse_any,
    parse_coord,
    parse_int_tuple,
    parse_layout,
    parse_swizzle,
    parse_tiler,
    to_cxx,
    to_text,
)

from tests.layout.strategies import gapped_layouts, layouts

UNKNOWNS = st.builds(Unknown, st.sampled_from([8, 32, 64]), st.integers(1, 1 << 40))
STRIDES = st.one_of(
    st.integers(0, 1 << 62),
    UNKNOWNS,
    st.builds(
        ScaledBasis,
        st.one_of(st.integers(1, 9), UNKNOWNS),
        st.lists(st.integers(0, 3), min_size=1, max_size=32).map(tuple),
    ),
)


@given(st.lists(st.tuples(st.one_of(st.integers(1, 9), UNKNOWNS), STRIDES), min_size=1, max_size=5))
def test_layouts_with_dynamic_and_basis_leaves_round_trip(modes: list[tuple[int, int]]) -> None:
    layout = Layout(tuple(s for s, _ in modes), tuple(d for _, d in modes))
    assert parse_layout(to_text(layout)) == layout
    assert to_text(layout) == str(layout)


@given(layouts(), st.integers(0, 100))
def test_composed_layouts_round_trip(inner: Layout, offset: int) -> None:
    for outer in (cute.Swizzle(3, 4, 3), Layout((4, 5), (5, 1))):
        composed = ComposedLayout(outer, offset, inner)
        assert parse_layout(to_text(composed)) == composed
        assert parse_layout(to_cxx(composed)) == composed


@given(gapped_layouts())
def test_the_cxx_style_reads_as_the_same_layout(layout: Layout) -> None:
    assert parse_layout(to_cxx(layout)) == layout


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("( 8 , 2 ) : ( 1 , 8 )", "(8,2):(1,8)"),
        ("(8):(1)", "(8):(1)"),
        ("8:1", "8:1"),
        ("((_8,?),2):((_1,?{i64}),1@0@1)", "((8,?),2):((1,?{i64}),1@0@1)"),
        ("Sw<3,4,3>o 0 o 8:1", "S<3,4,3> o 0 o 8:1"),
        ("(6,2):(1,3) o (2,1) o (2,3):(1@1,2@0)", "(6,2):(1,3) o (2,1) o (2,3):(1@1,2@0)"),
        ("?{i64 div=8}:?{div=16}", "?{i64 div=8}:?{div=16}"),
    ],
)
def test_layouts_print_canonically(text: str, canonical: str) -> None:
    assert to_text(parse_layout(text)) == canonical


@pytest.mark.parametrize("text", ["[4:1;_]", "[(2,3):(1,2)]", "[[2:1;_];4:2]", "(32,_)", "32", "4:1", "[_]"])
def test_tilers_round_trip(text: str) -> None:
    assert to_text(parse_tiler(text)) == (text if text != "[_]" else "(_)")


def test_every_kind_is_recognised() -> None:
    assert parse_any("S<1,2,3>") == parse_swizzle("Sw<1,2,3>") == cute.Swizzle(1, 2, 3)
    assert parse_any("(1,(_,X))") == parse_coord("(1,(_,_))") == (1, (None, None))
    assert parse_any("<4:1;8>") == (Layout(4, 1), 8)
    assert parse_any("(1@0,?)") == parse_int_tuple("(1@0,?)") == (ScaledBasis(1, (0,)), Unknown())


@pytest.mark.parametrize(
    ("text", "offset", "end", "code"),
    [
        ("(4,x):(1,4)", 3, 4, Code.TEXT_SYNTAX),
        ("(4,2):(1,4", 10, 10, Code.TEXT_SYNTAX),
        ("(4,2)(1,4)", 5, 6, Code.TEXT_SYNTAX),
        ("(4,2):(1)", 6, 9, Code.TEXT_NOT_CONGRUENT),
        ("(4,0):(1,4)", 3, 4, Code.EXTENT_NOT_POSITIVE),
        ("(4,-2):(1,4)", 3, 5, Code.EXTENT_NOT_POSITIVE),
        ("4:1 4:1", 4, 7, Code.TEXT_SYNTAX),
        ("4:99999999999999999999", 2, 22, Code.TEXT_INTEGER_RANGE),
        ("(4611686018427387904,4):(1,1)", 0, 29, Code.TEXT_INTEGER_RANGE),
        ("S<3,4,2> o 0 o 8:1", 0, 8, Code.SWIZZLE_INVALID),
        ("S<3,4> o 0 o 8:1", 5, 6, Code.TEXT_SYNTAX),
        ("4:?{i64div=8}", 3, 4, Code.TEXT_SYNTAX),
        ("4:?{div=0}", 8, 9, Code.TEXT_INTEGER_RANGE),
        ("_:1", 0, 1, Code.TEXT_SYNTAX),
        ("4:1@99", 3, 6, Code.TEXT_SYNTAX),
        ("", 0, 0, Code.TEXT_SYNTAX),
    ],
)
def test_mistakes_are_located(text: str, offset: int, end: int, code: Code) -> None:
    with pytest.raises(LayoutSyntaxError) as caught:
        parse_layout(text)
    assert (caught.value.code, caught.value.offset, caught.value.end) == (code.id, offset, end)


@pytest.mark.parametrize(
    "text",
    ["(" * 100000, "(" * 33 + "1" + ")" * 33, "(" + "1," * 5000 + "1)", "1" * 70000, "_" * 70000, "[" * 5000],
)
def test_hostile_text_is_refused_at_once(text: str) -> None:
    for parse in (parse_layout, parse_int_tuple, parse_coord, parse_tiler):
        with pytest.raises(LayoutSyntaxError):
            parse(text)


@given(st.text(alphabet="0123456789_?@():,<>[];oSwXi{}div= -", max_size=40))
def test_any_text_parses_or_is_refused(text: str) -> None:
    for parse in (parse_layout, parse_int_tuple, parse_coord, parse_tiler, parse_swizzle, parse_any):
        try:
            value = parse(text)
        except LayoutSyntaxError as error:
            assert 0 <= error.offset <= error.end <= len(text)  # noqa: PT017
        else:
            assert parse_any(to_text(value)) == value


def test_integers_beyond_64_bits_do_not_print() -> None:
    with pytest.raises(LayoutError) as caught:
        to_text(Layout(2, 1 << 70))
    assert caught.value.code == Code.TEXT_INTEGER_RANGE.id
