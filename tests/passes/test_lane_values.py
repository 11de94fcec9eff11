# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What is said of the lanes of a warp holds, whatever the unknown values turn out to be."""

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st
from tilefold.base.target import WARP
from tilefold.passes.analysis import lane_values as lv
from tilefold.passes.analysis.lane_values import LaneValue

Known = tuple[LaneValue | None, list[int]]
"""What is said of a value, and what it is in each lane."""

LANES = list(range(WARP))


@st.composite
def leaves(draw: st.DrawFn) -> Known:
    match draw(st.integers(0, 3)):
        case 0:
            value = draw(st.integers(0, 300))
            return lv.constant(value), [value] * WARP
        case 1:
            step = draw(st.sampled_from([1, 4, 6, 64]))
            value = step * draw(st.integers(0, 50))
            return lv.uniform(step), [value] * WARP
        case 2:
            trips = range(draw(st.integers(0, 9)), 90, draw(st.sampled_from([1, 3, 8, 16])))
            return lv.bits_of(trips), [draw(st.sampled_from(trips))] * WARP
        case _:
            return lv.exact(LANES), LANES


def _each(function: Callable[[int, int], int], a: list[int], b: list[int]) -> list[int]:
    return [function(x, y) for x, y in zip(a, b, strict=True)]


_OPERATIONS: tuple[tuple[Callable[[LaneValue, LaneValue], LaneValue | None], Callable[[int, int], int]], ...] = (
    (lambda a, b: a + b, int.__add__),
    (lambda a, b: a ^ b, int.__xor__),
    (lambda a, b: a * b, int.__mul__),
)


@st.composite
def values(draw: st.DrawFn, depth: int = 4) -> Known:
    """A random expression of lane numbers, constants, loop counters and unknown uniform values."""
    if depth == 0 or draw(st.integers(0, 4)) == 0:
        return draw(leaves())
    said, are = draw(values(depth - 1))
    if said is None:
        return None, are
    number = draw(st.sampled_from([0, 1, 2, 3, 7, 8, 24, 56, 64, 120, 255]))
    match draw(st.integers(0, 6)):
        case 0:
            return lv.mask_lanes(said, number), [x & number for x in are]
        case 1:
            return lv.shifted_right(said, number % 5), [x >> number % 5 for x in are]
        case 2:
            return said * lv.constant(number), [x * number for x in are]
        case 3:
            other, also = draw(values(depth - 1))
            choice = draw(st.booleans())
            return (None if other is None else lv.joined(said, other)), (are if choice else also)
        case which:
            other, also = draw(values(depth - 1))
            combine, meant = _OPERATIONS[which - 4]
            return (None if other is None else combine(said, other)), _each(meant, are, also)


def _possible(said: LaneValue, are: list[int]) -> bool:
    """Whether some `t` and `s` make of what is said what is."""
    if said.step == 0:
        unknown = are[0] ^ said.known[0]
        return unknown & ~said.mask == 0 and all(x ^ k == unknown for x, k in zip(are, said.known, strict=True))
    places = [bit for bit in range(12) if said.mask >> bit & 1]
    for choice in range(1 << len(places)):
        t = sum(1 << bit for index, bit in enumerate(places) if choice >> index & 1)
        rest = {x - (k ^ t) for x, k in zip(are, said.known, strict=True)}
        if len(rest) == 1 and rest.pop() % said.step == 0:
            return True
    return False


@given(values())
def test_what_is_said_holds(value: Known) -> None:
    said, are = value
    assert said is None or _possible(said, are)


def test_a_swizzled_row_is_known_up_to_what_all_lanes_share() -> None:
    """Row `lane % 16`, column 8 times a half warp's number plus 16 times a loop counter, under S<3,3,3>."""
    lane = lv.exact(LANES)
    row, half = lv.mask_lanes(lane, 15), lv.shifted_right(lane, 4)
    assert row is not None
    assert half is not None
    column = half * lv.constant(8)
    rows = row * lv.constant(64)
    assert column is not None
    assert rows is not None
    start = rows + column
    assert start is not None
    counter = lv.bits_of(range(4)) * lv.constant(16)
    assert counter is not None
    place = start + counter
    assert place is not None
    high = lv.mask_lanes(place, 7 << 6)
    assert high is not None
    moved = lv.shifted_right(high, 3)
    assert moved is not None
    swizzled = place ^ moved
    assert swizzled is not None
    assert (swizzled.mask, swizzled.step) == (0b110000, 0)
    assert swizzled.known[5] & 0b111000 == 5 << 3
