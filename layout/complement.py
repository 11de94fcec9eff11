# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The complement of a layout: the indices it leaves out, as a layout."""

from typing import Any

from .coalesce import coalesce_shape, filter_layout, from_modes, merge_modes
from .coordinates import idx2crd
from .core import ComposedLayout, Layout, LayoutLike, cosize, make_layout
from .errors import Code, LayoutError
from .integers import Tree, floordiv, is_static, mul
from .inttuple import ceil_div, compact_major, is_fully_static, show, wrap

_SEARCH = 1 << 12  # coordinates times modes


def complement(layout: LayoutLike, cotarget: Any = None) -> Layout:
    """The layout R that, beside `layout`, numbers the indices up to `cotarget` (a shape; by default the
    cosize).

    R is ordered, and disjoint from `layout` but for index 0; together they cover the indices below the size
    of `cotarget` where the strides divide each other. Stride-0 modes of `layout` are ignored. For a
    composed layout it is the complement of the inner one.

    Raises `LayoutError` if two coordinates share an index (E0206), or if there are several modes and one
    has a dynamic stride (E0207).
    """
    if type(layout) is ComposedLayout:
        layout = layout.inner
    assert type(layout) is Layout
    plain: Layout = filter_layout(layout)
    if cotarget is None:
        cotarget = cosize(plain)
    if type(plain.stride) is int and plain.stride == 0:
        return make_layout(coalesce_shape(cotarget))
    modes = list(zip(wrap(plain.stride), wrap(plain.shape), strict=True))
    if len(modes) > 1:
        if not is_fully_static(plain.stride):
            raise LayoutError(
                Code.DYNAMIC_UNSUPPORTED,
                f"the complement of {layout} needs static strides",
                "a dynamic stride is possible in a layout of one mode only",
            )
        modes.sort(key=_stride_of)
    shape: list[Any] = []
    stride: list[Any] = [1]
    for d, s in modes:
        gap = floordiv(d, stride[-1])
        if type(gap) is int and gap < 1:
            raise LayoutError(
                Code.NOT_INJECTIVE,
                f"the complement of {layout} does not exist: {_collision(plain)}, its modes overlap",
                "every stride must be at least the extent times the stride of the next smaller one",
            )
        shape.append(gap)
        stride.append(mul(d, s))
    end = stride.pop()
    rest: Tree = coalesce_shape(ceil_div(cotarget, end))
    if isinstance(rest, tuple):
        return from_modes(*merge_modes([*shape, *rest], [*stride, *compact_major(rest, end)]))
    shape.append(rest)
    stride.append(end)
    return from_modes(*merge_modes(shape, stride))


def _stride_of(mode: tuple[Any, Any]) -> int:
    return mode[0]


def _collision(layout: Layout) -> str:
    """Names two coordinates of `layout` with one index, if a short search finds any."""
    seen: dict[int, int] = {}
    if is_static(layout.size):
        for i in range(min(layout.size, _SEARCH // len(layout))):
            first = seen.setdefault(layout(i), i)
            if first != i:
                a, b = show(idx2crd(first, layout.shape)), show(idx2crd(i, layout.shape))
                return f"{a} and {b} of {layout} both map to {layout(i)}"
    return f"in {layout}"
