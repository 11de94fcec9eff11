# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rearranging the modes of a layout without changing any index, and fixing some of them (CuTe's slice and dice).

Each function takes a layout or a composed layout, and treats an integer shape as one mode.
"""

from collections.abc import Callable
from typing import Any

from ...base.errors import Code, LayoutError
from .coordinates import crd2idx
from .core import AnyLayout, ComposedLayout, Layout, LayoutLike, Tiler, check_mode, plain_layout
from .integers import AnyInt, AnyTuple, Coord, IntTuple, Tree, add, as_coordinate
from .inttuple import MAX_LEAVES, dice_tuple, flatten, rank, show, slice_tuple, unflatten, wrap
from .swizzle import Swizzle


def on_outer(layout: ComposedLayout, f: Callable[[Layout], Layout]) -> LayoutLike:
    """`layout` with `f` applied to its outer layout; an identity swizzle without offset is dropped."""
    return compose_parts(layout.inner, layout.offset, f(layout.outer))


def compose_parts(inner: Swizzle | Layout, offset: AnyTuple, outer: Layout) -> LayoutLike:
    """`inner o offset o outer`, or only `outer` where the rest is the identity."""
    if type(inner) is Swizzle and inner.bits == 0 and type(offset) is int and offset == 0:
        return outer
    return ComposedLayout(inner, offset, outer)


def _restructure(layout: LayoutLike, f: Callable[[Any], Any]) -> AnyLayout:
    """`layout` with `f` applied to its shape and to its stride."""
    if type(layout) is ComposedLayout:
        return on_outer(layout, lambda outer: _restructure(outer, f))
    assert type(layout) is Layout
    return Layout(f(layout.shape), f(layout.stride))


def flatten_layout(layout: LayoutLike) -> AnyLayout:
    """`layout` with all modes at one level; an integer shape stays one."""
    return _restructure(layout, flatten)


def unflatten_layout(layout: LayoutLike, profile: IntTuple) -> LayoutLike:
    """`layout`, whose modes are leaves, nested like `profile`."""
    return _restructure(layout, lambda t: unflatten(wrap(t), profile))


def take(layout: LayoutLike, begin: int, end: int) -> AnyLayout:
    """Modes `begin` to `end - 1` of `layout`. Raises `LayoutError` (E0208) if the range is empty or leaves
    the modes.
    """
    _check_range(layout, begin, end)
    return _restructure(layout, lambda t: wrap(t)[begin:end])


def select(layout: LayoutLike, *modes: int) -> LayoutLike:
    """The named modes of `layout`, in that order."""
    for mode in modes:
        check_mode(mode, len(layout), layout)
    return _restructure(layout, lambda t: tuple([wrap(t)[m] for m in modes]))


def group_modes(layout: LayoutLike, begin: int, end: int) -> LayoutLike:
    """`layout` with modes `begin` to `end - 1` made one nested mode."""
    _check_range(layout, begin, end)

    def group(t: Tree) -> Any:
        t = wrap(t)
        return (*t[:begin], t[begin:end], *t[end:])

    return _restructure(layout, group)


def ungroup_mode(layout: LayoutLike, mode: int) -> LayoutLike:
    """`layout` with the parts of mode `mode` made modes of their own."""
    check_mode(mode, len(layout), layout)

    def ungroup(t: Tree) -> AnyTuple:
        t = wrap(t)
        return (*t[:mode], *wrap(t[mode]), *t[mode + 1 :])

    return _restructure(layout, ungroup)


def _check_range(layout: LayoutLike, begin: int, end: int) -> None:
    if not 0 <= begin < end <= len(layout):
        raise LayoutError(
            Code.MODE_OUT_OF_RANGE, f"modes {begin} to {end - 1} are not a range of the {len(layout)} modes of {layout}"
        )


def append(layout: LayoutLike, n: int, mode: Layout | None = None) -> Any:
    """`layout` with copies of `mode` (1:0 by default) after its modes, up to rank `n`.

    Raises `LayoutError` if the rank is already larger than `n` (E0202), or `n` larger than is accepted (E0209).
    """
    return _pad(layout, n, mode or Layout(1, 0), at_end=True)


def prepend(layout: LayoutLike, n: int, mode: Layout | None = None) -> LayoutLike:
    """`layout` with copies of `mode` (1:0 by default) before its modes, up to rank `n`.

    Raises `LayoutError` if the rank is already larger than `n` (E0202), or `n` larger than is accepted (E0209).
    """
    return _pad(layout, n, mode or Layout(1, 0), at_end=False)


def _pad(layout: LayoutLike, n: int, mode: Layout, at_end: bool) -> AnyLayout:
    if type(layout) is ComposedLayout:
        return on_outer(layout, lambda outer: _pad(outer, n, mode, at_end))
    assert type(layout) is Layout
    missing = n - len(layout)
    if missing < 0:
        raise LayoutError(Code.RANK_MISMATCH, f"{layout} has more than {n} modes")
    if n > MAX_LEAVES:
        raise LayoutError(Code.RESULT_TOO_LARGE, f"a layout may have at most {MAX_LEAVES} modes, not {n}")
    if missing == 0:
        return layout
    pads = ((mode.shape,) * missing, (mode.stride,) * missing)
    shape, stride = wrap(layout.shape), wrap(layout.stride)
    return Layout(shape + pads[0], stride + pads[1]) if at_end else Layout(pads[0] + shape, pads[1] + stride)


def replace(layout: Layout, mode: int, new: Layout) -> Layout:
    """`layout` with mode `mode` replaced by `new`."""
    check_mode(mode, len(layout), layout)
    if type(layout.shape) is not tuple or type(layout.stride) is not tuple:
        return new
    return Layout(
        (*layout.shape[:mode], new.shape, *layout.shape[mode + 1 :]),
        (*layout.stride[:mode], new.stride, *layout.stride[mode + 1 :]),
    )


def zip_tuples(t: Tree) -> AnyTuple:
    """A tuple of equally long tuples, transposed: ((a,b),(c,d)) becomes ((a,c),(b,d))."""
    if not isinstance(t, tuple):
        return t
    if not t or not isinstance(t[0], tuple):
        return (t,)
    if any(rank(x) != len(t[0]) or not isinstance(x, tuple) for x in t):
        raise LayoutError(Code.RANK_MISMATCH, f"the modes of {show(t)} differ in rank")
    return tuple(zip(*t, strict=True))


def zip_layout(layout: LayoutLike) -> AnyLayout:
    """`layout`, whose modes have the same rank, with modes and their parts exchanged."""
    return _restructure(layout, zip_tuples)


def zip_layouts(a: Layout, b: Layout) -> Layout:
    """The layout whose mode i is made of mode i of `a` and mode i of `b`."""
    return Layout(zip_tuples((a.shape, b.shape)), zip_tuples((a.stride, b.stride)))


def tile_unzip(layout: LayoutLike, tiler: Tiler) -> LayoutLike:
    """Gathers, for a `layout` divided by `tiler` mode by mode, first the parts inside a tile, then the tiles.

    Raises `LayoutError` (E0202) where a mode under a leaf of the tiler has not these two parts.
    """
    divided = len(layout) == 2 and type(tiler) is not tuple
    return layout if divided else _restructure(layout, lambda t: _unzip(t, tiler))


def _unzip(t: Tree, guide: Tiler) -> AnyTuple:
    if not isinstance(guide, tuple):
        if not isinstance(t, tuple) or len(t) != 2:
            raise LayoutError(
                Code.RANK_MISMATCH,
                f"the mode {show(t)} lacks the two parts of the tiler, tile and rest",
                "an underscore in the tiler needs a mode of rank 2; use an extent or a layout",
            )
        return t
    t = wrap(t)
    if len(t) < len(guide):
        raise LayoutError(Code.RANK_MISMATCH, f"{show(t)} has fewer modes than the tiler")
    parts = [_unzip(x, g) for x, g in zip(t, guide, strict=False)]
    return tuple([p[0] for p in parts]), (*(p[1] for p in parts), *t[len(guide) :])


def spread(layout: LayoutLike, tile: bool) -> AnyTuple:
    """A zipped `layout` (tile, rest) with the modes of rest, and of the tile if `tile`, at the top level."""

    def spread_tuple(t: tuple[Tree, Tree]) -> AnyTuple:
        inside, rest = t
        first = inside if tile and isinstance(inside, tuple) and len(inside) != 1 else (inside,)
        return (*first, *(rest if isinstance(rest, tuple) and len(rest) != 1 else (rest,)))

    return _restructure(layout, spread_tuple)


def slice_and_offset(coord: Coord, layout: LayoutLike) -> tuple[LayoutLike, AnyInt]:
    """The layout of the modes that `coord` keeps, and the index at which it starts.

    Integers of `coord` may be dynamic. For a composed layout the start moves into its offset, and the index
    returned is 0. Raises `LayoutError` (E0201) if `coord` does not fit the shape.
    """
    outer = plain_layout(layout)
    assert type(outer) is Layout
    sliced = Layout(slice_tuple(coord, outer.shape), slice_tuple(coord, outer.stride))
    offset = crd2idx(coord, outer.shape, outer.stride)
    if type(layout) is ComposedLayout:
        return ComposedLayout(layout.inner, add(layout.offset, offset), sliced), 0
    return sliced, as_coordinate(offset)


def slice_(coord: Coord, layout: LayoutLike) -> LayoutLike:
    """The layout of the modes that `coord` keeps (for a composed layout, with the offset of the others)."""
    return slice_and_offset(coord, layout)[0]


def dice(coord: Coord, layout: LayoutLike) -> Layout:
    """The layout of the modes that `coord` fixes. Raises `LayoutError` (E0211) for a composed layout."""
    if type(layout) is ComposedLayout:
        raise LayoutError(Code.COMPOSED_UNSUPPORTED, f"dice is not defined for the composed layout {layout}")
    assert type(layout) is Layout
    return Layout(dice_tuple(coord, layout.shape), dice_tuple(coord, layout.stride))


def domain_offset(coord: Coord, layout: LayoutLike) -> tuple[LayoutLike, AnyInt]:
    """`layout` as seen from `coord`: a layout and the index where it starts (0 for a composed layout)."""
    if type(layout) is ComposedLayout:
        offset = add(layout.offset, crd2idx(coord, layout.outer.shape, layout.outer.stride))
        return ComposedLayout(layout.inner, offset, layout.outer), 0
    return layout, layout(coord)
