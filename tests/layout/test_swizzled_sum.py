# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What of an index a swizzle leaves alone: layouts as sums of whole periods and the rest."""

import pytest
from tilefold.layout.algebra.core import Layout, size
from tilefold.layout.algebra.inttuple import leaves
from tilefold.layout.algebra.swizzle import Swizzle
from tilefold.layout.algebra.swizzled_sum import by_period, cut_at_period
from tilefold.layout.text.layouts import parse_layout


def layout(text: str) -> Layout:
    """A plain layout."""
    parsed = parse_layout(text)
    assert isinstance(parsed, Layout)
    return parsed


@pytest.mark.parametrize(("text", "summands"), [
    ("(4,2):(16,4096)", 2),
    ("((2,2),(2,3)):((16,1024),(32,512))", 2),
    ("8:16", 1),
    ("(2,4):(512,1024)", 1),
    ("(4,2):(16,0)", 1),
    ("(3,5):(513,1536)", 2),
])  # fmt: skip
def test_a_layout_is_the_sum_of_periods_and_the_rest(text: str, summands: int) -> None:
    mode, swizzle = layout(text), Swizzle(3, 3, 3)
    parts = by_period(mode, swizzle)
    assert len(parts) == summands
    for index in range(size(mode)):
        assert sum(part(index) for part in parts) == mode(index)
        rest, periods = (parts[0](index), sum(part(index) for part in parts[1:]))
        assert swizzle(mode(index)) == swizzle(rest) + periods
    for part in parts[1:]:
        assert all(stride % 512 == 0 for stride in leaves(part.stride))


@pytest.mark.parametrize(("text", "summands"), [
    ("64:16", 2),
    ("(2,32):(4096,64)", 2),
    ("24:64", 2),
    ("32:16", 1),
    ("20:64", 1),  # no whole number of periods
    ("8:48", 1),
])  # fmt: skip
def test_what_a_loop_moves_is_cut_at_the_period(text: str, summands: int) -> None:
    mode, swizzle = layout(text), Swizzle(3, 3, 3)
    cut = cut_at_period(mode, swizzle)
    assert [cut(index) for index in range(size(mode))] == [mode(index) for index in range(size(mode))]
    assert len(by_period(cut, swizzle)) == summands
