# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Layouts: functions from coordinates to indices (CuTe's layout.hpp and layout_composed.hpp)."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import gcd
from typing import Any, TypeAlias, final

from ...base.errors import Code, LayoutError
from .coordinates import crd2crd, crd2idx, crd2idx_in_shape, idx2crd
from .display import Displayed
from .integers import AnyInt, AnyTuple, Coord, IntTuple, ScaledBasis, Tree, add, as_coordinate, mul
from .inttuple import (
    MAX_LEAVES,
    are_static,
    compact_major,
    compact_order,
    congruent,
    filter_zeros,
    flatten_to_tuple,
    has_underscore,
    leaves,
    product,
    repeat_like,
    show,
    slice_tuple,
    transform_leaves,
    wrap,
)
from .inttuple import depth as tuple_depth
from .inttuple import rank as tuple_rank
from .swizzle import Swizzle


@final
@dataclass(frozen=True, slots=True, init=False)
class Layout(Displayed):
    """`shape:stride`, the function that maps a coordinate to the inner product with the stride.

    Shape and stride are tuples of one profile, or two leaves. The constructor trusts its arguments;
    `make_layout` checks them. Layouts are immutable, hashable and callable: `layout(coord)` is an index,
    and a layout where `coord` holds an underscore (None). `layout[i]` is a mode, `len(layout)` the rank.
    """

    shape: IntTuple
    stride: IntTuple

    def __init__(self, shape: IntTuple, stride: IntTuple) -> None:
        # As a frozen dataclass would do by name, but faster: layouts are made everywhere.
        _set_shape(self, shape)
        _set_stride(self, stride)

    def __call__(self, *coord: Coord) -> Any:
        """The index at `coord`, given whole or mode by mode; the sliced layout if it holds an underscore.

        Raises `LayoutError` (E0201) if the coordinate does not fit the shape.
        """
        c = coord[0] if len(coord) == 1 else coord
        if has_underscore(c):
            return Layout(slice_tuple(c, self.shape), slice_tuple(c, self.stride))
        return as_coordinate(crd2idx(c, self.shape, self.stride))

    def __getitem__(self, mode: int) -> "Layout":
        shape, stride = wrap(self.shape), wrap(self.stride)
        check_mode(mode, len(shape), self)
        return Layout(shape[mode], stride[mode])

    def __len__(self) -> int:
        return tuple_rank(self.shape)

    def __iter__(self) -> "Iterator[Layout]":
        return map(Layout, wrap(self.shape), wrap(self.stride))

    def __str__(self) -> str:
        return f"{show(self.shape)}:{show(self.stride)}"

    @property
    def size(self) -> Any:
        """The number of coordinates."""
        return product(self.shape)

    @property
    def outer(self) -> "Layout":
        """The layout itself: it is composed with nothing."""
        return self

    @property
    def value(self) -> "Layout":
        """The layout itself, as functions of MLIR dialects take it."""
        return self

    @property
    def inner(self) -> Swizzle:
        """The swizzle that changes nothing."""
        return Swizzle(0, 4, 3)

    def get_hier_coord(self, idx: AnyTuple) -> AnyTuple:
        """The coordinate of an index of a compact layout, nested like the shape."""
        return idx2crd(idx, self.shape, self.stride)

    def get_flat_coord(self, idx: object) -> AnyTuple:
        """The coordinate of an index of a compact layout, one integer for each mode."""
        coord = self.get_hier_coord(idx)
        return crd2crd(coord, self.shape, (1,) * len(self)) if isinstance(self.shape, tuple) else coord

    def get_1d_coord(self, idx: object) -> AnyTuple:
        """The coordinate of an index of a compact layout, as one integer."""
        return crd2idx_in_shape(self.get_hier_coord(idx), self.shape)

    @property
    def max_alignment(self) -> int:
        """The largest number of elements that divides the index of every contiguous run, counting from 0.

        A dynamic stride counts as 0, a dynamic extent as 1, as in CuTe (layout.hpp, max_alignment).
        """
        pairs = zip(leaves(self.shape), leaves(self.stride), strict=True)
        steps = [(n, d if type(d) is int else 0) for n, d in pairs if type(n) is int and n != 1]
        run = 1
        while following := next((mode for mode in steps if mode[1] == run), None):
            steps.remove(following)
            run *= following[0]
        return gcd(run, *(step for _, step in steps))


_set_shape: Callable[[Layout, IntTuple], None] = Layout.__dict__["shape"].__set__
_set_stride: Callable[[Layout, IntTuple], None] = Layout.__dict__["stride"].__set__


@final
@dataclass(frozen=True, slots=True)
class ComposedLayout(Displayed):
    """The function `inner(offset + outer(coord))`; its domain is that of `outer`.

    `inner` is a swizzle or a layout. Printed `S<3,4,3> o 0 o (8,8):(8,1)`.
    """

    inner: "Swizzle | Layout"
    offset: IntTuple
    outer: Layout

    def __call__(self, *coord: Coord) -> Any:
        """The index at `coord`; where it holds an underscore, the composed layout of the modes that it keeps."""
        c = coord[0] if len(coord) == 1 else coord
        offset = add(self.offset, crd2idx(c, self.outer.shape, self.outer.stride))
        if has_underscore(c):
            shape, stride = slice_tuple(c, self.outer.shape), slice_tuple(c, self.outer.stride)
            return ComposedLayout(self.inner, offset, Layout(shape, stride))
        return self.inner(offset)

    def __getitem__(self, mode: int) -> "ComposedLayout":
        return ComposedLayout(self.inner, self.offset, self.outer[mode])

    def __len__(self) -> int:
        return len(self.outer)

    def __str__(self) -> str:
        return f"{self.inner} o {show(self.offset)} o {self.outer}"

    @property
    def value(self) -> "ComposedLayout":
        """The layout itself, as functions of MLIR dialects take it."""
        return self

    @property
    def shape(self) -> IntTuple:
        """The shape of the domain."""
        return self.outer.shape

    @property
    def size(self) -> Any:
        """The number of coordinates."""
        return product(self.outer.shape)


LayoutLike: TypeAlias = "Layout | ComposedLayout"
AnyLayout: TypeAlias = Any
"""A `LayoutLike`: a `Layout` where the arguments are plain, on which callers rely."""
Tiler: TypeAlias = "IntTuple | Layout | tuple[Tiler, ...] | None"
"""A tiler of a layout: a layout; an extent, which stands for `extent:1`; `None`, which keeps a mode; or a
tuple of these.
"""


def plain_layout(layout: LayoutLike) -> Layout:
    """The layout itself, or of a composed one the outer layout, which takes the coordinates."""
    return layout.outer if type(layout) is ComposedLayout else layout


def check_mode(mode: int, modes: int, subject: object) -> None:
    """Raises `LayoutError` (E0208) unless 0 <= mode < modes."""
    if not hasattr(mode, "__index__") or not 0 <= mode < modes:
        raise LayoutError(Code.MODE_OUT_OF_RANGE, f"{subject} has modes 0 to {modes - 1}, not {mode}")


def check_shape(shape: IntTuple) -> None:
    """Raises `LayoutError` unless all static extents are positive and there are not too many (E0205,
    E0209).
    """
    extents = flatten_to_tuple(shape)
    if len(extents) > MAX_LEAVES:
        raise LayoutError(Code.RESULT_TOO_LARGE, f"a shape may have at most {MAX_LEAVES} extents")
    for extent in extents:
        if type(extent) is int:
            if extent < 1:
                raise LayoutError(
                    Code.EXTENT_NOT_POSITIVE, f"extent {extent} in the shape {show(shape)} is not positive"
                )
        elif extent is None or type(extent) in (ScaledBasis, Layout, ComposedLayout, bool):
            raise LayoutError(Code.BAD_ARGUMENT, f"an extent must be an integer, not {show(extent)}")


def make_layout(shape: "IntTuple | Layout", *more: "IntTuple | Layout") -> Layout:
    """`make_layout(shape)`, `make_layout(shape, stride)` or `make_layout(layout, ...)`.

    Without a stride the layout is compact, first mode fastest, and static extents of 1 have stride 0. From
    layouts it is the layout whose modes they are. Raises `LayoutError` if shape and stride are not congruent
    (E0201), an extent is not positive (E0205) or layouts and integers are mixed (E0213).
    """
    if type(shape) is Layout:
        return _join_layouts((shape, *more))
    extents = _integers(shape)
    check_shape(extents)
    if not more:
        return Layout(extents, compact_major(extents))
    stride = _integers(more[0])
    if len(more) > 1:
        raise LayoutError(Code.BAD_ARGUMENT, "make_layout takes one shape and one stride, or layouts")
    if not congruent(extents, stride):
        message = f"shape {show(extents)} and stride {show(stride)} are nested differently"
        raise LayoutError(Code.PROFILE_MISMATCH, message)
    return Layout(extents, stride)


def _join_layouts(modes: "tuple[IntTuple | Layout, ...]") -> Layout:
    shapes: list[IntTuple] = []
    strides: list[IntTuple] = []
    for mode in modes:
        if type(mode) is not Layout:
            raise LayoutError(Code.BAD_ARGUMENT, f"make_layout takes layouts or integers, not both: {mode}")
        shapes.append(mode.shape)
        strides.append(mode.stride)
    return Layout(tuple(shapes), tuple(strides))


def _integers(x: "IntTuple | Layout | ComposedLayout") -> IntTuple:
    if type(x) is Layout or type(x) is ComposedLayout:
        raise LayoutError(Code.BAD_ARGUMENT, f"make_layout takes plain layouts or integers, not both: {x}")
    return x


def join(modes: Sequence[Layout]) -> Layout:
    """The layout whose modes are `modes`."""
    return Layout(tuple([m.shape for m in modes]), tuple([m.stride for m in modes]))


def flat_modes(layout: "Layout | ComposedLayout") -> Iterator[tuple[AnyTuple, AnyTuple]]:
    """The extents of a layout, each with its stride (those of the outer layout, for a composed one)."""
    plain = plain_layout(layout)
    return zip(leaves(plain.shape), leaves(plain.stride), strict=True)


def all_indices(layout: Layout, counting: Callable[[int], object]) -> AnyInt:
    """The index of each coordinate of a static layout, in colexicographic order: an array of the kind of `counting(n)`,
    which is 0 to n - 1.
    """
    total = counting(1)
    for extent, stride in flat_modes(layout):
        total = ((counting(extent) * stride)[:, None] + total).ravel()
    return total


def size(x: "Tree | ComposedLayout") -> Any:
    """The number of coordinates of a layout, or into a shape."""
    return product(x.shape if type(x) is Layout or type(x) is ComposedLayout else x)


def rank(x: "Tree | ComposedLayout") -> int:
    """The number of modes of a layout or a tuple; 1 for an integer."""
    return len(x) if isinstance(x, Layout | ComposedLayout) else tuple_rank(x)


def depth(x: "Tree | ComposedLayout") -> int:
    """How deep a layout or a tuple nests; 0 for an integer."""
    return tuple_depth(x.shape if isinstance(x, Layout | ComposedLayout) else x)


def coshape(layout: Layout) -> AnyTuple:
    """One more than the largest index, for each axis of the indices."""
    shape, stride = flatten_to_tuple(layout.shape), flatten_to_tuple(layout.stride)
    if are_static(shape) and are_static(stride):
        return 1 + sum([(s - 1) * abs(d) for s, d in zip(shape, stride, strict=True)])
    steps = transform_leaves(lambda d: abs(d) if hasattr(d, "__abs__") else d, layout.stride)
    last = transform_leaves(lambda s: add(s, -1), layout.shape)
    return transform_leaves(lambda c: add(c, 1), as_coordinate(_inner_product(last, steps)))


def _inner_product(a: Tree, b: AnyTuple) -> AnyTuple:
    if not isinstance(a, tuple):
        return mul(a, b)
    result: AnyTuple = 0
    for x, y in zip(a, b, strict=True):
        result = add(result, _inner_product(x, y))
    return result


def cosize(layout: "Layout | ComposedLayout") -> AnyTuple:
    """One more than the largest index (of the outer layout, for a composed one)."""
    end = coshape(plain_layout(layout))
    return end if type(end) is int else product(end)


def make_row_major_layout(shape: IntTuple) -> Layout:
    """The compact layout of `shape` with the last mode fastest."""
    check_shape(shape)
    return Layout(shape, compact_major(shape, row_major=True))


def make_ordered_layout(shape: IntTuple, order: IntTuple) -> Layout:
    """The compact layout of `shape` whose modes run the faster the smaller their leaf in `order`.

    Modes of equal leaves begin at the same stride, as in CuTe: `(2,3,2)` by `(1,1,3)` is `(2,3,2):(1,1,6)`, in which
    coordinates share indices.
    """
    check_shape(shape)
    return Layout(shape, compact_order(shape, order))


def make_identity_layout(shape: IntTuple) -> Layout:
    """The layout that maps each coordinate of `shape` to itself."""
    check_shape(shape)
    return Layout(shape, make_basis_like(shape))


def make_basis_like(shape: IntTuple, path: tuple[int, ...] = ()) -> IntTuple:
    """The unit basis strides of an identity layout of `shape`; 1 for an integer."""
    if type(shape) is tuple:
        return tuple([make_basis_like(s, (*path, i)) for i, s in enumerate(shape)])
    return ScaledBasis(1, path) if path else 1


def make_layout_like(layout: Layout) -> Layout:
    """A compact layout with the shape and the stride order of `layout`; stride-0 modes keep stride 0.

    Modes of equal strides have equal strides in the result, as in CuTe.
    """
    return Layout(layout.shape, compact_order(filter_zeros(layout.stride, layout.shape), layout.stride))


def zero_layout(shape: IntTuple) -> Layout:
    """The layout of `shape` that maps everything to 0."""
    return Layout(shape, repeat_like(shape, 0))
