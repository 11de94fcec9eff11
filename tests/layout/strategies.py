# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Hypothesis strategies for static layouts and their parts."""

import math
from typing import Any, cast

from hypothesis import strategies as st
from tilefold.layout.algebra.core import Layout, make_layout, make_row_major_layout
from tilefold.layout.algebra.integers import mul
from tilefold.layout.algebra.inttuple import flatten_to_tuple, unflatten

MAX_SIZE = 128
EXTENTS = st.sampled_from([1, 2, 2, 3, 4, 4, 5, 6, 8])
STRIDES = st.sampled_from([0, 1, 2, 3, 4, 8, 12, 32])


def nested(flat: list[Any], cuts: list[bool]) -> Any:
    """The leaves as a tuple in which each True of `cuts` puts a leaf and its successor into a tuple of
    their own.
    """
    result: list[Any] = []
    i = 0
    while i < len(flat):
        if i + 1 < len(flat) and cuts[i]:
            result.append((flat[i], flat[i + 1]))
            i += 2
        else:
            result.append(flat[i])
            i += 1
    return tuple(result)


@st.composite
def shapes(draw: st.DrawFn, max_rank: int = 4) -> Any:
    """A shape of at most `max_rank` extents, nested here and there; sometimes an integer."""
    flat = draw(st.lists(EXTENTS, min_size=1, max_size=max_rank).filter(lambda f: math.prod(f) <= MAX_SIZE))
    if len(flat) == 1 and draw(st.booleans()):
        return flat[0]
    return nested(flat, draw(st.lists(st.booleans(), min_size=len(flat), max_size=len(flat))))


@st.composite
def layouts(draw: st.DrawFn, max_rank: int = 4) -> Layout:
    """Any layout with small strides, injective or not."""
    shape = draw(shapes(max_rank))
    flat = flatten_to_tuple(shape)
    strides = draw(st.lists(STRIDES, min_size=len(flat), max_size=len(flat)))
    return Layout(shape, unflatten(strides, shape))


@st.composite
def gapped_layouts(draw: st.DrawFn, max_rank: int = 4, max_gap: int = 3) -> Layout:
    """An injective layout whose modes, in any order, continue each other or leave gaps between."""
    shape = draw(shapes(max_rank))
    flat = flatten_to_tuple(shape)
    strides = [0] * len(flat)
    step = 1
    for i in draw(st.permutations(range(len(flat)))):
        step = mul(step, draw(st.integers(1, max_gap)))
        strides[i] = step
        step *= flat[i]
    return Layout(shape, unflatten(strides, shape))


def compact_layouts(max_rank: int = 4) -> st.SearchStrategy[Layout]:
    """A bijection of its coordinates to 0 .. size - 1."""
    return gapped_layouts(max_rank, 1)


def coordinates(shape: Any) -> st.SearchStrategy[Any]:
    """A coordinate of `shape` in any form: an integer in place of any tuple."""
    size = make_layout(shape).size
    whole = st.integers(0, size - 1)
    return (
        st.one_of(whole, st.tuples(*[coordinates(s) for s in cast(tuple[Any, ...], shape)]))
        if isinstance(shape, tuple)
        else whole
    )


@st.composite
def two_numberings(draw: st.DrawFn) -> tuple[Layout, Layout]:
    """Two bijections of equally many coordinates, with parts that run alike."""
    a = draw(compact_layouts())
    flat = list(flatten_to_tuple(a.shape))
    shape = tuple(draw(st.permutations(flat)))
    b = make_layout(shape) if draw(st.booleans()) else make_row_major_layout(shape)
    return a, b
