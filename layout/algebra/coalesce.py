# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Simplifying a layout without changing the function of its integer coordinate; and values that are adjacent in memory,
with the distances between those that are not, as far as types know them.
"""

from collections.abc import Callable, Sequence
from math import gcd

from ...base.errors import Code, LayoutError
from .core import AnyLayout, ComposedLayout, Layout, LayoutLike, flat_modes, join, plain_layout
from .integers import AnyTuple, ScaledBasis, Tree, divisor, is_static, mul
from .inttuple import filter_zeros as filter_zeros_tuple
from .inttuple import flatten_to_tuple, leaves, wrap
from .modes import on_outer
from .swizzle import Swizzle


def merge_modes(
    shape: Sequence[object], stride: Sequence[object], open_end: bool = False
) -> tuple[list[AnyTuple], list[AnyTuple]]:
    """Flat shape and stride with static extents of 1 dropped and contiguous neighbours merged.

    With `open_end` the last mode is kept even at extent 1, then shown as 2: composition reads its stride,
    not its extent.
    """
    if not shape:
        return [1], [0]
    # Built from the last mode to the first, and reversed at the end.
    extent, step = shape[-1], stride[-1]
    if open_end and type(extent) is int and extent == 1:
        extent = 2
    shapes, strides = [extent], [step]
    for i in range(len(shape) - 2, -1, -1):
        s, d = shape[i], stride[i]
        if type(s) is int and s == 1:
            continue
        if type(extent) is int:
            if extent == 1:
                shapes[-1] = extent = s
                strides[-1] = step = d
                continue
            if s * d == step if type(s) is int and type(d) is int and type(step) is int else continues(s, d, step):
                shapes[-1] = extent = mul(s, extent)
                strides[-1] = step = d
                continue
        extent, step = s, d
        shapes.append(s)
        strides.append(d)
    if len(shapes) == 1 and type(extent) is int and extent == 1:
        return [1], [0]
    shapes.reverse()
    strides.reverse()
    return shapes, strides


def continues(shape: object, stride: object, next_stride: AnyTuple) -> bool:
    """Whether a mode with `next_stride` statically goes on where `shape:stride` ends."""
    if type(stride) is int and type(shape) is int:
        return type(next_stride) is int and shape * stride == next_stride
    end = mul(shape, stride)
    if type(end) is ScaledBasis:
        same_axis = type(next_stride) is ScaledBasis and next_stride.path == end.path
        return same_axis and is_static(end.value) and end.value == next_stride.value
    return is_static(end) and is_static(next_stride) and end == next_stride


def from_modes(shape: list[AnyTuple], stride: list[AnyTuple]) -> Layout:
    """The layout of flat modes; a single one becomes a leaf."""
    return Layout(shape[0], stride[0]) if len(shape) == 1 else Layout(tuple(shape), tuple(stride))


def coalesce(layout: LayoutLike, profile: Tree = None) -> AnyLayout:
    """The layout with the fewest modes that is the same function of an integer coordinate.

    With a tuple `profile`, each mode under a leaf of it is coalesced for itself, and modes beyond its rank
    are left alone. A layout of size 1 becomes 1:0. Dynamic modes merge only where that is right for every
    value.
    """
    if profile is None and type(layout) is Layout:
        return _coalesce(layout)
    return by_profile(layout, profile, _coalesce)


def coalesce_under(coord: AnyTuple, layout: Layout) -> Layout:
    """`layout` with the modes under each integer of `coord` coalesced, which leaves fewer divisions in its index.

    The index of every coordinate within the shape stays the same. Modes that are not static stay as they are.
    """
    return by_profile(layout, coord, _coalesce_static)


def _coalesce_static(layout: Layout) -> Layout:
    return _coalesce(layout) if all(type(x) is int for x in leaves((layout.shape, layout.stride))) else layout


def _coalesce(layout: Layout) -> Layout:
    return from_modes(*merge_modes(flatten_to_tuple(layout.shape), flatten_to_tuple(layout.stride)))


def coalesce_open(layout: Layout) -> Layout:
    """`coalesce`, but the last mode is kept, so that it can be read beyond its extent."""
    return from_modes(*merge_modes(flatten_to_tuple(layout.shape), flatten_to_tuple(layout.stride), open_end=True))


def coalesce_shape(shape: Tree) -> AnyTuple:
    """`shape` flat, with neighbouring static extents multiplied, and neighbouring dynamic ones."""
    if not isinstance(shape, tuple):
        return shape
    result: list[AnyTuple] = []
    for s in flatten_to_tuple(shape):
        if result and is_static(result[-1]) == is_static(s):
            result[-1] = mul(result[-1], s)
        else:
            result.append(s)
    return result[0] if len(result) == 1 else tuple(result)


def filter_zeros(layout: LayoutLike, profile: AnyTuple = None) -> AnyLayout:
    """`layout` with extent 1 where the stride is a static 0, or where `profile` (a stride) has one."""
    if type(layout) is ComposedLayout:
        return on_outer(layout, lambda inner: filter_zeros(inner, profile))
    assert type(layout) is Layout
    return Layout(filter_zeros_tuple(layout.stride if profile is None else profile, layout.shape), layout.stride)


def filter_layout(layout: LayoutLike, profile: Tree = None) -> AnyLayout:
    """`layout` without its modes of stride 0 and size 1, coalesced; by mode with a tuple `profile`."""
    if profile is None and type(layout) is Layout:
        return _filter(layout)
    return by_profile(layout, profile, _filter)


def _filter(layout: Layout) -> Layout:
    stride = flatten_to_tuple(layout.stride)
    shape = flatten_to_tuple(layout.shape)
    extents = [1 if type(d) is int and d == 0 else s for s, d in zip(shape, stride, strict=True)]
    return from_modes(*merge_modes(extents, stride))


def by_profile(layout: LayoutLike, profile: Tree, f: Callable[[Layout], Layout]) -> AnyLayout:
    """`layout` with `f` applied to each part under a leaf of `profile`; modes beyond its rank stay."""
    if type(layout) is ComposedLayout:
        return on_outer(layout, lambda inner: by_profile(inner, profile, f))
    assert type(layout) is Layout
    if not isinstance(profile, tuple):
        return f(layout)
    modes = list(layout)
    if len(profile) > len(modes):
        raise LayoutError(Code.RANK_MISMATCH, f"profile has {len(profile)} modes, {layout} has {len(modes)}")
    return join([*(by_profile(m, p, f) for m, p in zip(modes, profile, strict=False)), *modes[len(wrap(profile)) :]])


def contiguous_values(layout: LayoutLike) -> int:
    """How many values from coordinate 0 on follow each other in memory, in order, wherever the layout starts.

    For a swizzled layout at most its period of unmoved elements, and only as far as its offset keeps them together.
    """
    extent, stride = next(flat_modes(coalesce(plain_layout(layout))))
    run = divisor(extent) if stride == 1 else 1
    if not isinstance(layout, ComposedLayout):
        return run
    assert isinstance(layout.inner, Swizzle)
    return gcd(run, 1 << layout.inner.base, divisor(layout.offset))


def steps(layout: LayoutLike) -> int:
    """The greatest number of elements that divides every distance between coordinates of `layout`; 0 if there are
    none.
    """
    return gcd(*[divisor(stride) for extent, stride in flat_modes(layout) if extent != 1])
