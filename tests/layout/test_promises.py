# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Layouts with `?`, seen another way: right for all values that their divisors allow, or refused."""

from collections.abc import Callable
from itertools import islice, product
from typing import Any

import pytest
import tilefold.layout as cute
from hypothesis import given
from hypothesis import strategies as st
from tilefold.base.errors import LayoutError
from tilefold.dialects.cute.values import unknowns, with_scalars
from tilefold.layout.algebra.core import Layout
from tilefold.layout.algebra.integers import Unknown
from tilefold.layout.algebra.inttuple import unflatten
from tilefold.layout.algebra.promises import check_promises
from tilefold.layout.algebra.scalars import RunTimeInt, value_of
from tilefold.layout.text.layouts import parse_layout

from tests.layout.strategies import STRIDES, layouts, nested

_DYNAMIC = st.sampled_from([Unknown(div=d) for d in (1, 2, 3, 4, 6, 8)])
_STATIC = st.sampled_from([1, 2, 3, 4, 6, 8])


@st.composite
def dynamic_layouts(draw: st.DrawFn) -> Layout:
    """A layout of which one or two extents are known at run time only."""
    flat: list[Any] = draw(st.lists(_STATIC, min_size=1, max_size=4))
    for place in draw(st.lists(st.integers(0, len(flat) - 1), min_size=1, max_size=2, unique=True)):
        flat[place] = draw(_DYNAMIC)
    shape = nested(flat, draw(st.lists(st.booleans(), min_size=len(flat), max_size=len(flat))))
    strides = draw(st.lists(STRIDES, min_size=len(flat), max_size=len(flat)))
    return Layout(shape, unflatten(strides, shape))


def accepted(layout: Layout, see: Callable[[Any], Any]) -> bool:
    """Whether a layout is seen so for all values of its `?`."""
    try:
        see(layout)
        check_promises(unknowns(layout), (), lambda values: see(with_scalars(layout, values)))
    except LayoutError:
        return False
    return True


def allowed(layout: Layout) -> Any:
    """Values of the `?`."""
    multiples = [[x.div * n for n in range(1, 15)] for x in unknowns(layout)]
    return islice(product(*multiples), 0, None, 1 if len(multiples) == 1 else 5)


def at(layout: Layout, values: Any, see: Callable[[Any], Any]) -> tuple[Layout, Layout]:
    """A layout with these values, and what is seen of it as by a program that knows them when it runs."""
    seen = see(with_scalars(layout, [RunTimeInt(value) for value in values]))
    return with_scalars(layout, values), Layout(value_of(seen.shape), value_of(seen.stride))


def is_composition(result: Layout, a: Layout, b: Layout) -> bool:
    """Whether `result` is `a(b(c))` at every `c`."""
    return result.size == b.size and all(result(i) == a(b(i)) for i in range(b.size))


@given(dynamic_layouts(), layouts(max_rank=3))
def test_composition_is_right_for_all_values_or_refused(a: Layout, b: Layout) -> None:
    def see(layout: Any) -> Any:
        return cute.composition(layout, b)

    if not accepted(a, see):
        return
    for values in allowed(a):
        whole, result = at(a, values, see)
        assert is_composition(result, whole, b)


@given(dynamic_layouts(), st.lists(st.sampled_from([2, 3, 4, 8]), min_size=1, max_size=2))
def test_divides_are_right_for_all_values_or_refused(layout: Layout, tile: list[int]) -> None:
    tiler: Any = tuple(tile) if len(tile) <= len(layout) and len(tile) > 1 else tile[0]

    def see(layout: Any) -> Any:
        return cute.zipped_divide(layout, tiler)

    if not accepted(layout, see):
        return
    for values in allowed(layout):
        whole, seen = at(layout, values, see)
        if seen.size != whole.size:
            continue  # tiles that do not cover the layout are another mistake
        try:
            static = see(whole)
        except LayoutError:
            pytest.fail(f"{whole} by {tiler} is no layout")
        assert [seen(i) for i in range(seen.size)] == [static(i) for i in range(static.size)]


@pytest.mark.parametrize(
    ("layout", "tile", "divisor"),
    [
        ("(?{div=4},8):(8,1)", "32:1", 16),
        ("(?,8):(1,?)", "16:1", 8),
        ("(?{div=6},8):(1,100)", "12:1", None),
        ("(?{div=32},8):(8,1)", "32:1", None),
        ("(?{div=4},8):(8,1)", "4:8", 16),
        ("((?{div=2},?),8):((1,50),4)", "6:1", 6),
    ],
)
def test_the_divisor_that_is_needed(layout: str, tile: str, divisor: int | None) -> None:
    a, b = parse_layout(layout), parse_layout(tile)
    assert isinstance(a, Layout)
    extents = [x for x in unknowns(a)][: layout.split(":")[0].count("?")]

    def check() -> None:
        check_promises(extents, unknowns(a)[len(extents) :], lambda v: cute.composition(with_scalars(a, v), b))

    if divisor is None:
        check()
        return
    with pytest.raises(LayoutError, match="which the type allows: composition with") as caught:
        check()
    assert f"?{{div={divisor}}}" in caught.value.hint
