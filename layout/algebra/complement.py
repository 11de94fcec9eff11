# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The complement of a layout: the indices it leaves out, as a layout."""

from operator import itemgetter

from ...base.errors import Code, LayoutError
from .axes import by_axis, has_basis
from .coalesce import coalesce_shape, filter_layout, from_modes, merge_modes
from .coordinates import idx2crd
from .core import ComposedLayout, Layout, LayoutLike, check_mode, coshape, cosize, join, make_basis_like, make_layout
from .integers import AnyTuple, IntTuple, Tree, floordiv, is_static, mul
from .inttuple import are_static, ceil_div, compact_major, flatten, product, rank, show, wrap

_SEARCH = 1 << 12  # coordinates times modes


def complement(layout: LayoutLike, cotarget: AnyTuple = None, *, merge_dynamic: bool = True) -> Layout:
    """The layout R that, together with `layout`, covers the indices up to `cotarget` (a shape; by default the cosize).

    R is ordered, and disjoint from `layout` but for index 0; together they cover the indices below the size
    of `cotarget` where the strides divide each other. Stride-0 modes of `layout` are ignored. For a
    composed layout it is the complement of the outer one. Dynamic extents of the cotarget beyond the layout
    become one mode, or one each without `merge_dynamic`. With basis strides each axis has a complement of
    its own; axes of the cotarget that the layout does not touch are left out entirely.

    Raises `LayoutError` if two coordinates share an index (E0206), or if there are several modes and one
    has a dynamic stride (E0207).
    """
    if type(layout) is ComposedLayout:
        layout = layout.outer
    assert type(layout) is Layout
    if has_basis(layout.stride):
        return _complement_of_axes(layout, coshape(layout) if cotarget is None else cotarget)
    plain: Layout = filter_layout(layout)
    if cotarget is None:
        cotarget = cosize(plain)
    if type(plain.stride) is int and plain.stride == 0:
        return make_layout(coalesce_shape(cotarget) if merge_dynamic else cotarget)
    shape, stride = gaps(plain)
    end = stride.pop()
    rest: Tree = ceil_div(cotarget, end)
    if isinstance(rest, tuple):
        rest = coalesce_shape(rest) if merge_dynamic else flatten(rest)
    if isinstance(rest, tuple):
        return from_modes(*merge_modes([*shape, *rest], [*stride, *compact_major(rest, end)]))
    shape.append(rest)
    stride.append(end)
    return from_modes(*merge_modes(shape, stride))


def open_complement(layout: Layout) -> Layout:
    """The complement without a cotarget: its last mode, of extent 1, has the stride at which all further
    indices begin, and a composition reads on there. With basis strides each axis has one of its own.
    """
    if has_basis(layout.stride):
        return by_axis(layout, lambda _, part: open_complement(part))
    plain: Layout = filter_layout(layout)
    shape, stride = gaps(plain) if plain.stride != 0 else ([], [1])
    shapes, strides = merge_modes([*shape, 1], stride, open_end=True)
    return from_modes([*shapes[:-1], 1], strides)


def _complement_of_axes(layout: Layout, cotarget: IntTuple) -> Layout:
    """The complement of each axis up to the extent of `cotarget` there."""

    def up_to(path: tuple[int, ...], part: Layout) -> Layout:
        extent = cotarget
        for mode in path:
            check_mode(mode, rank(extent), show(cotarget))
            extent = wrap(extent)[mode]
        return complement(part, product(extent))

    result = by_axis(layout, up_to)
    untouched = list(enumerate(wrap(cotarget)))[len(result) :]
    return join([*result, *(Layout(extent, make_basis_like(extent, (i,))) for i, extent in untouched)])


def gaps(plain: Layout) -> tuple[list[AnyTuple], list[AnyTuple]]:
    """The gaps between the modes of a filtered layout: their extents, and their strides with one more, the end's."""
    strides = wrap(plain.stride)
    if len(strides) > 1 and not are_static(strides):
        raise LayoutError(
            Code.DYNAMIC_UNSUPPORTED,
            f"the complement of {plain} needs static strides",
            "a dynamic stride is possible in a layout of one mode only",
        )
    end = 1
    shape: list[AnyTuple] = []
    stride: list[AnyTuple] = [1]
    for d, s in sorted(zip(strides, wrap(plain.shape), strict=True), key=itemgetter(0)):
        gap = d // end if type(d) is int and type(end) is int else floordiv(d, end)
        if type(gap) is int and gap < 1:
            raise LayoutError(
                Code.NOT_INJECTIVE,
                f"the complement of {plain} does not exist: {_collision(plain)}, its modes overlap",
                "every stride must be at least the extent times the stride of the next smaller one",
            )
        end = d * s if type(d) is int and type(s) is int else mul(d, s)
        shape.append(gap)
        stride.append(end)
    return shape, stride


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
