# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Explanations: every step's claim holds at every index, and the result is the operation's own."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
import tilefold.layout as cute
from hypothesis import given
from hypothesis import strategies as st
from tilefold.base.errors import Code, LayoutError
from tilefold.layout.algebra.core import ComposedLayout, Layout, make_identity_layout
from tilefold.layout.algebra.integers import Unknown
from tilefold.layout.algebra.swizzle import Swizzle
from tilefold.layout.atoms.copy_names import copy_atom
from tilefold.layout.text.explain import EXPLAINED, explain
from tilefold.layout.text.explanation import Agree, Claim, Distinct, Explanation, Function, Increasing, SameIndices
from tilefold.layout.tiling.partition import inner_partition, local_tile, outer_partition
from tilefold.layout.tiling.tiled_copy import TiledCopy, make_tiled_copy

from tests.layout.strategies import gapped_layouts, layouts, shapes


def _apply(chain: tuple[Function, ...], index: int) -> Any:
    for function in reversed(chain):
        index = function(index)
    return index


def counterexample(claim: Claim) -> int | None:
    """The first index at which chains of functions differ, or the first place in a layout where it breaks the claim, or
    the least index that one of two layouts has alone; None if the claim holds.
    """
    match claim:
        case Agree(left, right, size):
            return next((i for i in range(size) if _apply(left, i) != _apply(right, i)), None)
        case Distinct(layout):
            indices = [layout(i) for i in range(layout.size)]
            return next((i for i, index in enumerate(indices) if index in indices[:i]), None)
        case Increasing(layout):
            return next((i for i in range(1, layout.size) if layout(i) <= layout(i - 1)), None)
        case SameIndices(left, right):
            return min({*map(left, range(left.size))} ^ {*map(right, range(right.size))}, default=None)


def checked(operation: Callable[..., Any], *arguments: Any) -> Explanation:
    """The explanation, all of whose claims hold."""
    explanation = explain(operation, *arguments)
    assert explanation.result == operation(*arguments)
    for step in explanation.all_steps():
        assert counterexample(step.claim) is None, f"{step}\nin\n{explanation}"
        assert step.rule
        assert step.text
    assert str(explanation).startswith(f"{explanation.operation}(")
    return explanation


@given(layouts())
def test_coalesce(layout: Layout) -> None:
    checked(cute.coalesce, layout)
    checked(cute.coalesce, layout, (1,) * len(layout))
    checked(cute.right_inverse, layout)


@given(gapped_layouts(), st.integers(1, 300))
def test_complement_and_left_inverse(layout: Layout, size: int) -> None:
    checked(cute.complement, layout)
    checked(cute.complement, layout, size)
    with suppress(LayoutError):
        checked(cute.left_inverse, layout)


@given(layouts(), st.one_of(layouts(), st.integers(1, 16), st.none()))
def test_composition(a: Layout, b: Any) -> None:
    with suppress(LayoutError):
        checked(cute.composition, a, b)
    with suppress(LayoutError):
        checked(cute.composition, a, (b,))


BY_MODE = st.lists(st.sampled_from([1, 2, 4, None, Layout(2, 2)]), min_size=1, max_size=3).map(tuple)
TILERS = st.one_of(st.integers(1, 8), layouts(2), st.none(), BY_MODE)
FORMS = [
    getattr(cute, f"{form}_{verb}") for form in ("logical", "zipped", "tiled", "flat") for verb in ("divide", "product")
]


@pytest.mark.parametrize("operation", FORMS, ids=lambda f: f.__name__)
@given(gapped_layouts(3, 2), TILERS)
def test_divides_and_products(operation: Callable[..., Any], layout: Layout, tiler: Any) -> None:
    try:
        expected = operation(layout, tiler)
    except LayoutError:
        with pytest.raises(LayoutError):
            explain(operation, layout, tiler)
        return
    if expected.size <= 1 << 11:
        checked(operation, layout, tiler)


@given(gapped_layouts(2, 2), gapped_layouts(2, 2))
def test_arranged_products(block: Layout, tiler: Layout) -> None:
    for operation in (cute.blocked_product, cute.raked_product):
        with suppress(LayoutError):
            if operation(block, tiler).size <= 1 << 11:
                checked(operation, block, tiler)


@given(shapes(3), st.data())
def test_local_tile(shape: Any, data: st.DataObject) -> None:
    layout = cute.make_layout(shape)
    modes = len(layout)
    tiler = tuple(data.draw(st.lists(st.sampled_from([1, 2, 4]), min_size=1, max_size=modes)))
    try:
        tiles = cute.zipped_divide(layout, tiler)[1]
    except LayoutError:
        return
    inside = [st.one_of(st.none(), st.integers(0, mode.size - 1)) for mode in tiles]
    coord = tuple([data.draw(places) for places in inside[: data.draw(st.integers(1, len(tiler)))]])
    checked(local_tile, layout, tiler, coord)
    checked(inner_partition, layout, tiler, coord)
    within = tuple([data.draw(st.one_of(st.none(), st.integers(0, extent - 1))) for extent in tiler])
    checked(outer_partition, layout, tiler, within)
    if len(coord) == len(tiler):
        tensor = cute.make_layout(*layout)
        checked(local_tile, tensor, (*tiler, 3), (*coord, None), (*[1] * len(tiler), None))


def test_the_parts_of_a_tiled_copy() -> None:
    copy = make_tiled_copy(copy_atom("SM75_U32x1_LDSM_N", 16), Layout((8, 4), (4, 1)), Layout((1, 2), (0, 1)))
    for thread in (0, 5, 31):
        for tensor in (Layout((16, 16), (16, 1)), Layout((8, 8, 3), (1, 8, 64))):
            read = checked(TiledCopy.partition_S, copy, tensor, thread)
            written = checked(TiledCopy.partition_D, copy, tensor, thread)
            assert {"threads", "slice"} <= {step.rule for step in read.steps}
            assert str(read) != str(written)


def test_the_text_numbers_the_steps_and_ends_with_the_result() -> None:
    lines = str(explain(cute.composition, Layout((6, 2), (8, 2)), Layout((4, 3), (3, 1)))).splitlines()
    assert lines[0] == "composition((6,2):(8,2), (4,3):(3,1))"
    assert lines[2] == (
        "    1.1. step: 2 steps of 3, which is the coordinate (3,0) of (6,2):(8,2), are 2 steps of 24 in its index"
    )
    assert lines[-1] == "= ((2,2),3):((24,2),8)"


@pytest.mark.parametrize(
    ("operation", "arguments", "code"),
    [
        (cute.flatten, (Layout(4, 1),), Code.BAD_ARGUMENT),
        (cute.coalesce, (ComposedLayout(Swizzle(1, 0, 1), 0, Layout(4, 1)),), Code.COMPOSED_UNSUPPORTED),
        (cute.coalesce, (Layout((4, Unknown()), (1, 4)),), Code.DYNAMIC_UNSUPPORTED),
        (cute.coalesce, (Layout((4, 4), (1, Unknown())),), Code.DYNAMIC_UNSUPPORTED),
        (cute.right_inverse, (make_identity_layout((4, 4)),), Code.BAD_ARGUMENT),
        (cute.composition, (Layout((4, 6), (1, 8)), Layout(3, 3)), Code.STRIDE_DIVISIBILITY),
        (cute.composition, (Layout(4, 1), Swizzle(1, 0, 1)), Code.BAD_ARGUMENT),
    ],
)
def test_what_cannot_be_explained(operation: Callable[..., Any], arguments: tuple[Any, ...], code: Code) -> None:
    with pytest.raises(LayoutError) as caught:
        explain(operation, *arguments)
    assert caught.value.code == code.id


@pytest.mark.parametrize(
    ("claim", "expected"),
    [
        (Agree((Layout(4, 1),), (Layout(4, 1), Layout((2, 2), (2, 1))), 4), 1),
        (Distinct(Layout((2, 2), (1, 1))), 2),
        (Increasing(Layout((2, 2), (2, 1))), 2),
        (SameIndices(Layout(4, 1), Layout(4, 2)), 1),
    ],
)
def test_claims_can_fail(claim: Claim, expected: int) -> None:
    assert counterexample(claim) == expected


def test_every_explained_operation_is_tested_here() -> None:
    tested = {cute.coalesce, cute.complement, cute.composition, cute.right_inverse, cute.left_inverse, *FORMS}
    tested |= {cute.blocked_product, cute.raked_product, TiledCopy.partition_S, TiledCopy.partition_D}
    tested |= {local_tile, inner_partition, outer_partition}
    assert set(EXPLAINED) == tested
