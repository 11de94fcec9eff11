# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The complement of a layout: the indices it leaves out, as a layout."""

from typing import Any

from .coalesce import coalesce, coalesce_shape, filter_layout
from .coordinates import idx2crd
from .core import ComposedLayout, Layout, LayoutLike, cosize, make_layout
from .errors import Code, LayoutError
from .integers import floordiv, is_static, mul
from .inttuple import ceil_div, compact_major, show, wrap

_SEARCH = 1 << 12


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
        if not all(is_static(d) for d, _ in modes):
            raise LayoutError(
                Code.DYNAMIC_UNSUPPORTED,
                f"the complement of {layout} needs static strides",
                "a dynamic stride is possible in a layout of one mode only",
            )
        modes.sort(key=lambda mode: mode[0])
    shape: list[Any] = []
    stride: list[Any] = [1]
    for d, s in modes:
        gap = floordiv(d, stride[-1])
        if is_static(gap) and gap == 0:
            raise LayoutError(
                Code.NOT_INJECTIVE,
                f"the complement of {layout} does not exist: {_collision(plain)}, its modes overlap",
                "every stride must be at least the extent times the stride of the next smaller one",
            )
        shape.append(gap)
        stride.append(mul(d, s))
    rest = coalesce_shape(ceil_div(cotarget, stride[-1]))
    rest_stride = compact_major(rest, stride.pop())
    return coalesce(Layout((*shape, rest), (*stride, rest_stride)))


def _collision(layout: Layout) -> str:
    """Names two coordinates of `layout` with one index, if a short search finds any."""
    seen: dict[int, int] = {}
    if is_static(layout.size):
        for i in range(min(layout.size, _SEARCH)):
            first = seen.setdefault(layout(i), i)
            if first != i:
                a, b = show(idx2crd(first, layout.shape)), show(idx2crd(i, layout.shape))
                return f"{a} and {b} of {layout} both map to {layout(i)}"
    return f"in {layout}"
