# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Dynamic integers: what types know stays true, and static parts fold away."""

from collections.abc import Callable
from typing import Any

import pytest
import tilefold.layout as cute
from hypothesis import given
from hypothesis import strategies as st
from tilefold.base.errors import Code, LayoutError
from tilefold.layout.algebra import integers
from tilefold.layout.algebra.core import Layout
from tilefold.layout.algebra.integers import ScaledBasis, Unknown

from tests.layout.strategies import gapped_layouts
from tests.oracle.record import RunTimeInt, map_leaves

BINARY: list[Callable[[Any, Any], Any]] = [
    lambda a, b: a + b,
    lambda a, b: a - b,
    lambda a, b: a * b,
    lambda a, b: a // b,
    lambda a, b: a % b,
    lambda a, b: a & b,
    lambda a, b: a ^ b,
]


@pytest.mark.parametrize("op", BINARY)
@given(x=st.integers(1, 64), y=st.integers(1, 64), times=st.tuples(st.integers(1, 9), st.integers(1, 9)))
def test_known_divisors_divide_the_result(
    op: Callable[[Any, Any], Any], x: int, y: int, times: tuple[int, int]
) -> None:
    a, b = x * times[0], y * times[1]
    for known in (op(Unknown(32, x), Unknown(32, y)), op(Unknown(32, x), b), op(a, Unknown(32, y))):
        assert op(a, b) % known.div == 0


@given(st.integers(1, 64), st.integers(1, 9), st.integers(0, 5))
def test_known_divisors_divide_shifts(x: int, times: int, bits: int) -> None:
    value = x * times
    assert (value << bits) % (Unknown(32, x) << bits).div == 0
    assert (value >> bits) % (Unknown(32, x) >> bits).div == 0


def test_widths_and_large_divisors() -> None:
    assert Unknown(32) + Unknown(64) == Unknown(64)
    big = Unknown(64, 1 << 40)
    assert (big * big).div == 1 << 62
    with pytest.raises(TypeError):
        bool(Unknown() < 3)


@pytest.mark.parametrize("x", [Unknown(), RunTimeInt(5)])
def test_static_zeros_and_ones_fold(x: Any) -> None:
    assert integers.mul(0, x) == integers.mul(x, 0) == 0
    assert integers.mul(1, x) is integers.mul(x, 1) is integers.add(0, x) is integers.add(x, 0) is x
    assert integers.floordiv(x, 1) is integers.sub(x, 0) is integers.ceil_div_int(x, 1) is x
    assert integers.mod(x, 1) == integers.floordiv(0, x) == integers.mod(0, x) == 0


def test_division_by_zero_is_refused() -> None:
    for f in (integers.floordiv, integers.mod, integers.ceil_div_int):
        with pytest.raises(LayoutError) as caught:
            f(4, 0)
        assert caught.value.code == Code.BAD_ARGUMENT.id


def test_bases_add_to_coordinates() -> None:
    assert integers.add(ScaledBasis(3, (1,)), ScaledBasis(2, (0, 1))) == ((0, 2), 3)
    assert str(ScaledBasis(3, (0, 1))) == "3@1@0"
    assert Layout((2, 3), (ScaledBasis(1, (1,)), ScaledBasis(2, (0,))))(1, 2) == (4, 1)
    with pytest.raises(LayoutError):
        integers.add(ScaledBasis(3, (1,)), 4)


def _dynamic(layout: Layout) -> Layout:
    """The layout with its extents and strides, but for strides 0 and 1, made run-time integers."""
    stride = map_leaves(lambda d: d if d in (0, 1) else RunTimeInt(d), layout.stride)
    return Layout(map_leaves(RunTimeInt, layout.shape), stride)


@given(gapped_layouts(3), st.integers(0, 200))
def test_dynamic_layouts_compute_the_same_indices(layout: Layout, index: int) -> None:
    i = index % layout.size
    dynamic: Any = RunTimeInt(i)
    for same in (_dynamic(layout), cute.coalesce(_dynamic(layout))):
        value = same(dynamic)
        assert (value.value if isinstance(value, RunTimeInt) else value) == layout(i)


@given(gapped_layouts(3), st.data())
def test_types_and_values_have_the_same_structure(layout: Layout, data: st.DataObject) -> None:
    """What is inferred with unknown integers fits what is computed with run-time ones, leaf by leaf."""
    tile = tuple(data.draw(st.sampled_from([1, 2, 4])) for _ in layout)
    known = _dynamic(layout)
    unknown = map_leaves(lambda x: Unknown() if isinstance(x, RunTimeInt) else x, known)
    for op in (cute.zipped_divide, cute.logical_divide, cute.composition):
        inferred, computed = op(unknown, tile), op(known, tile)
        assert map_leaves(lambda x: Unknown() if isinstance(x, RunTimeInt) else x, computed) == map_leaves(
            lambda x: Unknown() if isinstance(x, Unknown) else x, inferred
        )
