# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rules for the values of the types of the `cute` dialect, beyond the grammar. Every check raises `LayoutError`."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from ...base.errors import Code, LayoutError
from ...layout.algebra.axes import has_basis
from ...layout.algebra.coordinates import crd2idx
from ...layout.algebra.core import ComposedLayout, Layout
from ...layout.algebra.integers import ScaledBasis, Tree, Unknown, add, as_coordinate
from ...layout.algebra.inttuple import congruent, leaves, show, weakly_congruent
from ...layout.algebra.swizzle import Swizzle
from .values import AnyValue


def check_leaves(value: Any, *kinds: type) -> None:
    """Each leaf of a tuple is of one of `kinds`, and dynamic integers have 32 or 64 bits and no known divisors."""
    for leaf in leaves(value):
        if type(leaf) not in kinds:
            raise LayoutError(Code.TEXT_WRONG_KIND, f"{show(leaf)} cannot stand in {show(value)} here")
        integer = leaf.value if type(leaf) is ScaledBasis else leaf
        if type(integer) is Unknown and (integer.width not in (32, 64) or integer.div != 1):
            raise LayoutError(
                Code.TEXT_WRONG_KIND, f"{integer} is not a dynamic integer of the public IR", "write ? or ?{i64}"
            )


def check_strides(stride: AnyValue) -> None:
    """Strides are all integers or all bases (0 may stand among these), and no basis path ends inside another."""
    check_leaves(stride, int, Unknown, ScaledBasis)
    if not has_basis(stride):
        return
    paths: list[tuple[int, ...]] = []
    for leaf in leaves(stride):
        if type(leaf) is ScaledBasis:
            paths.append(leaf.path)
        elif type(leaf) is not int or leaf != 0:
            raise LayoutError(
                Code.BAD_ARGUMENT,
                f"the strides {show(stride)} mix integers and scaled bases",
                "only 0 may stand among bases",
            )
    for a, b in _neighbours(paths):
        if b[: len(a)] == a and len(a) < len(b):
            raise LayoutError(
                Code.BAD_ARGUMENT, f"in the strides {show(stride)} one basis names a mode and another a part of it"
            )


def _neighbours(paths: list[tuple[int, ...]]) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Distinct paths in order, each with the next: a prefix stands right before its extensions."""
    ordered = sorted(set(paths))
    return pairwise(ordered)


def check_layout(layout: Layout) -> None:
    """Extents are positive, shape and stride congruent, strides of one kind."""
    check_leaves(layout.shape, int, Unknown)
    for extent in leaves(layout.shape):
        if type(extent) is int and extent < 1:
            raise LayoutError(Code.EXTENT_NOT_POSITIVE, f"extent {extent} in the layout {layout} is not positive")
    if not congruent(layout.shape, layout.stride):
        raise LayoutError(Code.PROFILE_MISMATCH, f"shape and stride of {layout} are nested differently")
    check_strides(layout.stride)


def check_tile(tile: Tree) -> None:
    """A tile is made of layouts and underscores."""
    if isinstance(tile, tuple):
        for part in tile:
            check_tile(part)
    elif type(tile) is Layout:
        check_layout(tile)
    elif tile is not None:
        raise LayoutError(Code.TEXT_WRONG_KIND, f"{tile} cannot stand in a tile", f"write the layout {tile}:1, or _")


def check_composed(layout: ComposedLayout) -> None:
    """The parts fit: inner(offset + outer(coordinate)) is defined, and is not simply the outer layout."""
    if type(layout.inner) is Swizzle and layout.inner.bits == 0 and layout.offset == 0:
        raise LayoutError(Code.BAD_ARGUMENT, f"{layout} is the plain layout {layout.outer}", "its type is !cute.layout")
    check_layout(layout.outer)
    if type(layout.inner) is Layout:
        check_layout(layout.inner)
    check_leaves(layout.offset, int, Unknown)
    start: Tree = add(layout.offset, as_coordinate(crd2idx(0, layout.outer.shape, layout.outer.stride)))
    if isinstance(start, tuple):
        if type(layout.inner) is Swizzle:
            raise LayoutError(
                Code.COMPOSED_UNSUPPORTED,
                f"a swizzle permutes integers; {layout.outer} with offset {show(layout.offset)} yields tuples",
            )
        if not weakly_congruent(start, layout.inner.shape):
            raise LayoutError(
                Code.PROFILE_MISMATCH,
                f"indices such as {show(start)} do not fit the inner shape {show(layout.inner.shape)}",
            )
