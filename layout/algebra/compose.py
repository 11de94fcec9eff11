# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functional composition of layouts, the heart of the algebra (CuTe's layout.hpp)."""

from typing import Any

from ...base.errors import Code, LayoutError
from .axes import coprofile
from .coalesce import coalesce_open
from .core import AnyLayout, ComposedLayout, Layout, LayoutLike, Tiler, check_shape, join, make_layout
from .integers import AnyTuple, IntTuple, ScaledBasis, Tree, ceil_div_int, floordiv, minimum, mul, signum, static
from .inttuple import MAX_LEAVES, show, unwrap, wrap
from .modes import compose_parts
from .promises import known
from .swizzle import Swizzle, make_swizzle

_MAX_STEPS = 1 << 18  # modes of the left times leaves of the right: keeps a hostile composition under a second


def composition(a: "LayoutLike | Swizzle", b: "Tiler | ComposedLayout | Swizzle") -> AnyLayout:
    """The layout R with R(c) = a(b(c)) and the shape of `b`.

    `b` may be a layout; an extent, which stands for `extent:1`; an underscore (None), which returns `a`; or
    a tuple of these, applied to the modes of `a` one by one (modes of `a` beyond it are dropped, as in
    CuTe). Indices of `b` beyond the size of `a` run on in the last mode of `a`.

    Raises `LayoutError` if no layout is that function: a stride (E0203) or an extent (E0204) of `b` and the
    extents of `a` do not divide each other, or the sum of modes of `b` carries from one mode of `a` into the
    next (E0214).
    """
    if type(a) is ComposedLayout:
        outer = composition(a.outer, b)
        if type(outer) is ComposedLayout:
            raise LayoutError(Code.COMPOSED_UNSUPPORTED, f"{a} cannot be composed with {b}: both have swizzles")
        return compose_parts(a.inner, a.offset, outer)
    if type(a) is Swizzle:
        return _swizzle_after(a, b)
    assert type(a) is Layout
    if type(b) is Layout:
        return _compose(a, b)
    if b is None:
        return a
    if isinstance(b, tuple):
        if len(b) > len(a):
            raise LayoutError(Code.RANK_MISMATCH, f"the tiler has {len(b)} modes, {a} has only {len(a)}")
        return join([composition(mode, t) for mode, t in zip(a, b, strict=False)])
    if type(b) is Swizzle:
        y_mask, z_mask = [static(a(mask), "the image of a swizzle's bits") for mask in (b.y_mask, b.z_mask)]
        return ComposedLayout(make_swizzle(y_mask, z_mask), 0, a)
    if type(b) is ComposedLayout:
        if b.offset != 0:
            raise LayoutError(Code.COMPOSED_UNSUPPORTED, f"composition with {b} needs its offset to be 0")
        return composition(composition(a, b.inner), b.outer)
    check_shape(b)
    return _compose(a, Layout(b, 1))


def _swizzle_after(swizzle: Swizzle, b: object) -> "LayoutLike | Swizzle":
    if type(b) is Layout:
        return compose_parts(swizzle, 0, b)
    if type(b) is Swizzle and swizzle.shift == b.shift:
        return make_swizzle(swizzle.y_mask ^ b.y_mask, swizzle.z_mask ^ b.z_mask)
    raise LayoutError(
        Code.COMPOSED_UNSUPPORTED,
        f"{swizzle} cannot be composed with {b}",
        "compose it with a layout, or a swizzle of the same shift",
    )


def with_shape(layout: LayoutLike, shape: IntTuple) -> AnyLayout:
    """`layout` as a function of coordinates into `shape`."""
    return composition(layout, make_layout(shape))


def _compose(a: Layout, b: Layout) -> Layout:
    if not isinstance(b.shape, tuple) and type(b.stride) is not ScaledBasis:
        a = coalesce_open(a)
        return Layout(*_Composer(a.shape, b).leaf(a.shape, a.stride, b.shape, b.stride))
    a = _coalesce_to(a, coprofile(b.stride))
    composer = _Composer(a.shape, b)
    result = Layout(*composer.tree(a.shape, a.stride, b.shape, b.stride))
    composer.check_carries()
    return result


def _coalesce_to(layout: Layout, profile: Tree) -> Layout:
    if not isinstance(profile, tuple):
        return coalesce_open(layout)
    if len(profile) > len(layout):
        raise LayoutError(Code.RANK_MISMATCH, f"basis strides of rank {len(profile)} do not index {layout}")
    modes = list(layout)
    return join([*(_coalesce_to(m, p) for m, p in zip(modes, profile, strict=False)), *modes[len(profile) :]])


class _Composer:
    """Composes one left layout, coalesced, with the leaves of one right layout.

    Counts the work, and in `reach` how far the leaves reach together in each mode of the left layout of a known extent.
    """

    __slots__ = ("reach", "right", "steps")

    def __init__(self, left_shape: Any, right: Layout) -> None:
        self.right = right
        self.steps = len(wrap(left_shape))
        self.reach: dict[tuple[tuple[int, ...], int, int], int] = {}

    def tree(self, shape: IntTuple, stride: IntTuple, s: Tree, d: AnyTuple) -> tuple[AnyTuple, AnyTuple]:
        """The result for the part `s:d` of the right layout."""
        if not isinstance(s, tuple):
            return self.leaf(shape, stride, s, d)
        parts = [self.tree(shape, stride, x, y) for x, y in zip(s, d, strict=True)]
        return tuple([p[0] for p in parts]), tuple([p[1] for p in parts])

    def leaf(self, shape: Tree, stride: IntTuple, s: object, d: object) -> tuple[AnyTuple, AnyTuple]:
        """The result for one leaf `s:d` of the right layout."""
        path: tuple[int, ...] = ()
        if type(d) is ScaledBasis:
            path, d = d.path, d.value
            for mode in path:
                shape, stride = wrap(shape)[mode], wrap(stride)[mode]
        if type(d) is int and d == 0:
            return s, d
        if not isinstance(shape, tuple):
            return s, mul(d, stride)
        self.steps += len(shape)
        if self.steps > _MAX_STEPS:
            raise LayoutError(Code.RESULT_TOO_LARGE, f"a composition may hold at most {MAX_LEAVES} modes")
        return self._walk(path, shape, stride, s, d)

    def _walk(
        self, path: tuple[int, ...], shape: tuple[object, ...], stride: AnyTuple, s: object, d: object
    ) -> tuple[AnyTuple, AnyTuple]:
        """Follows `s:d` through the modes of the left layout, first to last."""
        result_shape: list[AnyTuple] = []
        result_stride: list[AnyTuple] = []
        rest_shape, rest_stride = s, d
        last = len(shape) - 1
        for i in range(last):
            extent = shape[i]
            step = abs(rest_stride) if type(rest_stride) is int else rest_stride
            size, pace = known(extent), known(step)
            if size is not None and pace is not None and pace % size and pace >= size:
                self._fail_stride(i, extent, rest_stride, s, d, shape)
            next_extent = ceil_div_int(extent, step)
            next_stride = mul(ceil_div_int(step, extent), signum(rest_stride))
            if not (_is_one(next_extent) or _is_one(rest_shape)):
                new_shape = minimum(next_extent, rest_shape)
                new, rest = known(new_shape), known(rest_shape)
                if new is not None and rest is not None:
                    if size is not None and pace is not None and size % pace and rest > new:
                        self._fail_stride(i, extent, rest_stride, s, d, shape)
                    if rest % new:
                        self._fail_shape(i, new, rest, s, d, shape)
                    if size is not None and pace is not None:
                        key = (path, i, size)
                        self.reach[key] = self.reach.get(key, 0) + (new - 1) * pace
                result_shape.append(new_shape)
                result_stride.append(mul(rest_stride, stride[i]))
                rest_shape = floordiv(rest_shape, new_shape)
            rest_stride = next_stride
        if not result_shape:
            return rest_shape, mul(rest_stride, stride[last])
        if not _is_one(rest_shape):
            result_shape.append(rest_shape)
            result_stride.append(mul(rest_stride, stride[last]))
        return unwrap(tuple(result_shape)), unwrap(tuple(result_stride))

    def check_carries(self) -> None:
        """Fails if sums of the right layout's modes carry from a mode of the left layout into the next."""
        for (_, mode, extent), reach in self.reach.items():
            if reach >= extent:
                raise LayoutError(
                    Code.MODES_CARRY,
                    f"composition with {self.right}: together its modes reach {reach} in mode {mode} of the "
                    f"left layout, whose extent is {extent}, and carry into the next mode",
                    "no layout describes this composition; the modes of the right layout must not overlap",
                )

    def _fail_stride(
        self, mode: int, extent: AnyTuple, stride: AnyTuple, s: AnyTuple, d: AnyTuple, shape: AnyTuple
    ) -> None:
        raise LayoutError(
            Code.STRIDE_DIVISIBILITY,
            f"composition with {self.right}: its mode {show(s)}:{show(d)} meets mode {mode} of the left "
            f"layout (coalesced shape {show(shape)}) with stride {stride}; {stride} and the extent {extent} do "
            "not divide each other",
            "no layout describes this composition; use strides that divide the extents or are multiples of them",
        )

    def _fail_shape(self, mode: int, new: int, rest: int, s: AnyTuple, d: AnyTuple, shape: AnyTuple) -> None:
        raise LayoutError(
            Code.SHAPE_DIVISIBILITY,
            f"composition with {self.right}: {rest} steps of its mode {show(s)}:{show(d)} remain at mode "
            f"{mode} of the left layout (coalesced shape {show(shape)}), which takes {new}; {new} does not divide "
            f"{rest}",
            f"no layout describes this composition; use an extent that is a multiple of {new}",
        )


def _is_one(x: object) -> bool:
    return type(x) is int and x == 1
