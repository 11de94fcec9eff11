# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Repeating a layout: products of layouts (CuTe's layout.hpp).

A product arranges copies of a block in the order of a second layout. The forms differ in how they arrange
the modes:

    logical_product   (Block,Tiler), or mode by mode ((BlockM,TilerM),(BlockN,TilerN),L,...)
    zipped_product    ((BlockM,BlockN),(TilerM,TilerN,L,...))
    tiled_product     ((BlockM,BlockN),TilerM,TilerN,L,...)
    flat_product      (BlockM,BlockN,TilerM,TilerN,L,...)
    blocked_product   ((BlockM,TilerM),(BlockN,TilerN))   copies side by side
    raked_product     ((TilerM,BlockM),(TilerN,BlockN))   copies interleaved

For a composed block they apply to its outer layout. They raise `LayoutError` if the tiler has too many
modes (E0202) or its extents do not fit the gaps of the block (E0203, E0204), or the block is not injective
(E0206).
"""

from ...base.errors import Code, LayoutError
from .axes import has_basis
from .complement import complement, open_complement
from .compose import composition
from .core import AnyLayout, ComposedLayout, Layout, LayoutLike, Tiler, cosize, join, make_layout, make_ordered_layout
from .integers import IntTuple, mul
from .inttuple import ceil_div, compact_major, is_fully_static, product, product_each, rank, show
from .inttuple import filter_zeros as filter_zeros_tuple
from .modes import append, on_outer, spread, take, tile_unzip, zip_layouts


def logical_product(block: LayoutLike, tiler: Tiler) -> AnyLayout:
    """`block` as one mode, and copies of it in the order of `tiler` as another; by mode for a tuple."""
    if type(block) is ComposedLayout:
        return on_outer(block, lambda outer: logical_product(outer, tiler))
    assert type(block) is Layout
    if tiler is None:
        return block
    if isinstance(tiler, tuple):
        modes = list(block)
        if len(tiler) > len(modes):
            raise LayoutError(Code.RANK_MISMATCH, f"the tiler has {len(tiler)} modes, {block} has only {len(modes)}")
        products = [logical_product(m, t) for m, t in zip(modes, tiler, strict=False)]
        return join([*products, *modes[len(tiler) :]])
    tile = tiler if type(tiler) is Layout else make_layout(tiler)
    if has_basis(block.stride):
        return join((block, composition(open_complement(block), tile)))
    copies = composition(complement(block, mul(block.size, cosize(tile))), tile)
    return join((block, copies))


def zipped_product(block: LayoutLike, tiler: Tiler) -> AnyLayout:
    """`block` and its copies as two modes."""
    return tile_unzip(logical_product(block, tiler), tiler)


def tiled_product(block: LayoutLike, tiler: Tiler) -> AnyLayout:
    """`block` as one mode, and one mode for each direction of the copies."""
    return spread(zipped_product(block, tiler), tile=False)


def flat_product(block: LayoutLike, tiler: Tiler) -> AnyLayout:
    """The modes of `block`, followed by the modes of the copies."""
    return spread(zipped_product(block, tiler), tile=True)


def blocked_product(block: LayoutLike, tiler: Layout) -> AnyLayout:
    """Copies of `block` side by side, in the order of `tiler`, mode by mode."""
    if type(block) is ComposedLayout:
        return on_outer(block, lambda outer: blocked_product(outer, tiler))
    assert type(block) is Layout
    inside, copies = _padded_product(block, tiler)
    return zip_layouts(inside, copies)


def raked_product(block: LayoutLike, tiler: Layout) -> AnyLayout:
    """Copies of `block` interleaved, in the order of `tiler`, mode by mode."""
    if type(block) is ComposedLayout:
        return on_outer(block, lambda outer: raked_product(outer, tiler))
    assert type(block) is Layout
    inside, copies = _padded_product(block, tiler)
    return zip_layouts(copies, inside)


def _padded_product(block: Layout, tiler: Layout) -> tuple[Layout, Layout]:
    modes = max(len(block), len(tiler))
    result = logical_product(append(block, modes), append(tiler, modes))
    return result[0], result[1]


def tile_to_shape(
    block: LayoutLike, shape: IntTuple, order: "IntTuple | None" = None, *, round_up: bool = False
) -> AnyLayout:
    """Copies of `block` side by side until they fill `shape`, those modes first that are smaller in `order`.

    Without `order`, the first mode runs fastest. Raises `LayoutError` if `block` has more modes than
    `shape` (E0202), or does not divide it (E0204) unless it may `round_up`, with copies that reach beyond.
    """
    if type(block) is ComposedLayout:
        return on_outer(block, lambda outer: tile_to_shape(outer, shape, order, round_up=round_up))
    assert type(block) is Layout
    if len(block) > rank(shape):
        raise LayoutError(Code.RANK_MISMATCH, f"{block} has more modes than the shape {show(shape)}")
    padded: Layout = append(block, rank(shape))
    inside, target = product_each(padded.shape), product_each(shape)
    copies = ceil_div(target, inside)
    if not round_up and is_fully_static(target) and product(target) != product(inside) * product(copies):
        raise LayoutError(
            Code.SHAPE_DIVISIBILITY,
            f"the block of shape {show(inside)} does not divide the shape {show(target)}",
            "give each mode a multiple of the block's extent",
        )
    return blocked_product(padded, make_layout(copies) if order is None else make_ordered_layout(copies, order))


def make_fragment_like(layout: LayoutLike) -> Layout:
    """A compact layout of registers for the elements of `layout`: its first mode is contiguous, others keep
    their order.

    Stride-0 parts of the first mode keep stride 0. Other modes of equal strides begin at the same stride, as in CuTe,
    so that places which `layout` makes one may be one here. A layout of rank 1, or with dynamic extents, gives the
    compact layout of its shape.
    """
    if type(layout) is ComposedLayout:
        return make_fragment_like(layout.outer)
    assert type(layout) is Layout
    if len(layout) == 1 or not is_fully_static(layout.shape):
        return make_layout(layout.shape)
    first, rest = layout[0], take(layout, 1, len(layout))
    block = Layout(first.shape, compact_major(filter_zeros_tuple(first.stride, first.shape)))
    return tiled_product(block, make_ordered_layout(rest.shape, rest.stride))
