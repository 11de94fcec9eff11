# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Logical arrays through layouts, against the layouts' own definition."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tilefold.layout.algebra.core import Layout, make_row_major_layout
from tilefold.layout.text.layouts import parse_layout
from tilefold.runtime.arrays.storage import (
    StorageError,
    element_indices,
    mode_sizes,
    read_logical_array,
    scatter,
    storage_of,
    storage_size,
)

LAYOUTS = [
    "8:1",
    "(8):(2)",
    "(4,6):(1,4)",
    "(4,6):(6,1)",
    "(4,6):(1,8)",
    "((2,2),3):((1,6),2)",
    "((2,3),(2,2)):((1,4),(2,12))",
    "(4,6):(0,1)",
    "(3,1,2):(2,77,1)",
    "S<2,0,2> o 0 o (4,4):(4,1)",
    "S<2,1,3> o 0 o ((4,2),8):((16,8),1)",
    "S<1,0,2> o 4 o (2,2):(1,2)",
    "(2,3,4):(12,4,1)",
]


def coordinates(*sizes: int) -> list[tuple[int, ...]]:
    """All coordinates of a shape."""
    return list(np.ndindex(*sizes))


@pytest.mark.parametrize("text", LAYOUTS)
def test_elements_are_where_the_layout_says(text: str) -> None:
    layout = parse_layout(text)
    sizes = mode_sizes(layout)
    storage = np.arange(storage_size(layout)) * 10
    logical = read_logical_array(storage, layout)
    assert logical.shape == sizes
    for coord in coordinates(*sizes):
        index = layout(coord if len(sizes) > 1 else coord[0])
        assert element_indices(layout)[coord] == index
        assert logical[coord] == 10 * index


@pytest.mark.parametrize("text", [t for t in LAYOUTS if "(0" not in t])
def test_storage_of_is_the_inverse(text: str) -> None:
    layout = parse_layout(text)
    array = np.random.default_rng(0).standard_normal(mode_sizes(layout)).astype(np.float16)
    storage = storage_of(array, layout)
    assert storage.shape == (storage_size(layout),)
    assert (read_logical_array(storage, layout) == array).all()


@given(st.lists(st.integers(1, 5), min_size=1, max_size=4))
def test_row_major_is_numpys_order(shape: list[int]) -> None:
    array = np.arange(np.prod(shape)).reshape(shape)
    assert (storage_of(array, make_row_major_layout(tuple(shape))) == array.ravel()).all()


def test_a_view_follows_the_storage_and_cannot_be_written() -> None:
    storage = np.zeros(24)
    view = read_logical_array(storage, Layout((4, 6), (1, 4)))
    storage[5] = 7
    assert view[1, 1] == 7
    with pytest.raises(ValueError, match="read-only"):
        view[0, 0] = 1


def test_what_no_coordinate_reaches_stays() -> None:
    storage = np.full(16, -1)
    scatter(np.ones((4, 3), int), storage, Layout((4, 3), (1, 5)))
    assert storage.tolist() == [1, 1, 1, 1, -1] * 2 + [1] * 4 + [-1, -1]


def test_refusals() -> None:
    layout = Layout((4, 6), (1, 4))
    with pytest.raises(StorageError, match=r"E3106.*needs a one-dimensional array of 24 elements"):
        read_logical_array(np.zeros(23), layout)
    with pytest.raises(StorageError, match="one-dimensional"):
        read_logical_array(np.zeros((4, 6)), layout)
    with pytest.raises(StorageError, match="its logical shape"):
        storage_of(np.zeros((6, 4)), layout)
    with pytest.raises(StorageError, match="not static"):
        mode_sizes(parse_layout("(?,4):(1,8)"))
