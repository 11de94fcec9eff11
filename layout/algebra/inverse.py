# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Inverses of layouts, and common vectors and alignment, which follow from them."""

from collections.abc import Iterable, Sequence

from ...base.errors import Code, LayoutError
from .axes import by_axis_inverse, has_basis
from .coalesce import coalesce, from_modes, merge_modes
from .compose import composition
from .core import AnyLayout, ComposedLayout, Layout, LayoutLike
from .integers import AnyTuple, is_static, mul, static
from .inttuple import compact_major, flatten_to_tuple, is_fully_static, tuple_gcd, unwrap, wrap
from .swizzle import Swizzle


def _modes(layout: Layout) -> tuple[tuple[AnyTuple, ...], tuple[AnyTuple, ...], list[AnyTuple]]:
    """Shape and stride of the coalesced layout, and the coordinate step of each mode."""
    plain: Layout = coalesce(layout)
    shape, stride = wrap(plain.shape), wrap(plain.stride)
    steps = [1]
    for s in shape:
        steps.append(mul(s, steps[-1]))
    return shape, stride, steps


def _by_stride(keys: list[int], modes: list[int]) -> list[int]:
    """`modes` in the order of their `keys`.

    Equal keys come out in the order that CuTe's exchange sort leaves, so that results agree with it.
    """
    if len(set(keys)) == len(keys):
        return [m for _, m in sorted(zip(keys, modes, strict=True))]
    pairs = list(zip(keys, modes, strict=True))
    for i in range(len(pairs)):
        for j in range(i + 1, len(pairs)):
            if pairs[j][0] < pairs[i][0]:
                pairs[i], pairs[j] = pairs[j], pairs[i]
    return [m for _, m in pairs]


def right_inverse(layout: LayoutLike) -> AnyLayout:
    """The largest layout R with layout(R(i)) == i that follows contiguous indices from 0.

    Modes with a dynamic stride are left out. For a composed layout with a swizzle and offset 0 the result
    is composed as well. Raises `LayoutError` (E0211) for other composed layouts, and where the swizzle exchanges
    indices of the layout with others, or bits of indices that belong to no coordinate.
    """
    if type(layout) is ComposedLayout:
        outer, swizzle = _invert_swizzled(layout)
        inverse: Layout = right_inverse(outer)
        result = _after_swizzle(layout, inverse, swizzle)
        count, size = static(inverse.size, "the size of an inverse"), static(outer.size, "the size of a layout")
        _check(layout, (i for i in range(count) if not (layout(result(i)) == i and result(i) < size)))
        return result
    assert type(layout) is Layout
    if has_basis(layout.stride):
        return by_axis_inverse(layout, _right_inverse)
    return _right_inverse(*_modes(layout))


def _right_inverse(shape: Sequence[object], stride: Sequence[AnyTuple], steps: Sequence[object]) -> Layout:
    ordered = [i for i, d in enumerate(stride) if type(d) is int]
    result_shape: list[AnyTuple] = []
    result_stride: list[AnyTuple] = []
    current = 1
    for i in _by_stride([stride[i] for i in ordered], ordered):
        if type(current) is int and stride[i] == current:
            result_shape.append(shape[i])
            result_stride.append(steps[i])
            current = mul(shape[i], stride[i])
    return from_modes(*merge_modes(result_shape, result_stride))


def left_inverse(layout: LayoutLike) -> AnyLayout:
    """A layout L with L(layout(i)) == i, for a layout that is injective except for modes of stride 0 (which read as 0).

    Raises `LayoutError` if the strides do not divide each other (E0203), or one is dynamic (E0207) or negative
    (E0213); for a composed layout also where `right_inverse` does (E0211).
    """
    if type(layout) is ComposedLayout:
        outer, swizzle = _invert_swizzled(layout)
        inverse: Layout = left_inverse(outer)
        result = _after_swizzle(layout, inverse, swizzle)
        coords = range(static(outer.size, "the size of a layout"))
        _check(layout, (layout(i) for i in coords if result(layout(i)) != inverse(outer(i))))
        return result
    assert type(layout) is Layout
    if has_basis(layout.stride):
        return by_axis_inverse(layout, _left_inverse)
    return _left_inverse(*_modes(layout))


def _left_inverse(shape: Sequence[AnyTuple], stride: Sequence[AnyTuple], steps: Sequence[object]) -> Layout:
    layout = Layout(tuple(shape), tuple(stride))
    if not shape:
        return Layout(1, 0)
    if not is_fully_static(layout.stride):
        raise LayoutError(Code.DYNAMIC_UNSUPPORTED, f"{layout} has no left inverse: a stride is dynamic")
    if any(d < 0 for d in stride):
        raise LayoutError(Code.BAD_ARGUMENT, f"{layout} has no left inverse: a stride is negative")
    order = _by_stride(list(stride), list(range(len(stride))))
    result_shape: list[AnyTuple] = []
    result_stride: list[AnyTuple] = [0]
    covered = 1
    for i in order:
        if stride[i] == 0:
            continue
        if stride[i] % covered:
            raise LayoutError(
                Code.STRIDE_DIVISIBILITY,
                f"{layout} has no left inverse: its stride {stride[i]} is not a multiple of {covered}, where "
                "its smaller strides end",
            )
        result_shape.append(stride[i] // covered)
        result_stride.append(steps[i])
        covered = stride[i]
    return coalesce(Layout((*result_shape, shape[order[-1]]), tuple(result_stride)))


def _invert_swizzled(layout: ComposedLayout) -> tuple[Layout, Swizzle]:
    if type(layout.inner) is not Swizzle or not is_static(layout.offset) or layout.offset != 0:
        raise LayoutError(
            Code.COMPOSED_UNSUPPORTED,
            f"the inverse of {layout} is not a layout",
            "a swizzle with offset 0 can be inverted",
        )
    return layout.outer, layout.inner


def _after_swizzle(layout: ComposedLayout, inverse: Layout, swizzle: Swizzle) -> AnyLayout:
    """The inverse of the outer layout after the swizzle, which is its own inverse."""
    try:
        return composition(inverse, swizzle)
    except LayoutError as error:
        raise _no_inverse(layout, f"{swizzle} is not one of bits of a coordinate of {layout.outer}") from error


def _check(layout: ComposedLayout, wrong: Iterable[int]) -> None:
    """LayoutError (E0211) if the result is not an inverse at some index."""
    if (index := next(iter(wrong), None)) is not None:
        problem = f"{layout.inner} moves the index {index} by bits that are not those of a coordinate of {layout.outer}"
        raise _no_inverse(layout, problem)


def _no_inverse(layout: ComposedLayout, problem: str) -> LayoutError:
    return LayoutError(
        Code.COMPOSED_UNSUPPORTED,
        f"the inverse of {layout} is not a layout: {problem}",
        "invert the layout without its swizzle, or take a swizzle of bits that the layout's indices have",
    )


def nullspace(layout: LayoutLike) -> Layout:
    """The layout of all coordinates, as integers, that `layout` maps to 0 through its stride-0 modes."""
    if type(layout) is ComposedLayout:
        return Layout(1, 0)
    assert type(layout) is Layout
    shape, stride = flatten_to_tuple(layout.shape), flatten_to_tuple(layout.stride)
    zeros = [i for i, d in enumerate(stride) if is_static(d) and d == 0]
    if not zeros:
        return Layout(1, 0)
    steps = compact_major(shape)
    return Layout(unwrap(tuple([shape[i] for i in zeros])), unwrap(tuple([steps[i] for i in zeros])))


def max_common_layout(a: LayoutLike, b: LayoutLike) -> Layout:
    """The layout of the coordinates that are contiguous, from index 0 on, in both `a` and `b`."""
    if type(a) is ComposedLayout or type(b) is ComposedLayout:
        common, limit = _without_swizzles(a, b)
        result = max_common_layout(*common)
        return composition(result, limit) if limit is not None and limit < result.size else result
    inverse = right_inverse(b)
    first = _first_common_mode(a, inverse)
    return Layout(1, 0) if first is None else composition(inverse, first)


def _first_common_mode(a: Layout, inverse: Layout) -> Layout | None:
    """The first mode of `a` after `inverse`, if it is statically contiguous."""
    try:
        first: Layout = coalesce(composition(a, inverse))[0]
    except LayoutError:
        return None  # not a layout, so nothing is known to be contiguous
    return first if is_static(first.shape) and is_static(first.stride) and first.stride == 1 else None


def max_common_vector(a: LayoutLike, b: LayoutLike) -> int:
    """The number of leading elements that are contiguous and in the same order in `a` and `b`; at least 1."""
    if type(a) is ComposedLayout or type(b) is ComposedLayout:
        common, limit = _without_swizzles(a, b)
        vector = max_common_vector(*common)
        return vector if limit is None else min(vector, limit)
    first = _first_common_mode(a, right_inverse(b))
    return 1 if first is None else static(first.shape, "a common vector")


def _without_swizzles(a: LayoutLike, b: LayoutLike) -> tuple[tuple[Layout, Layout], int | None]:
    """The outer layouts, and how many contiguous elements the swizzles keep together (None for equal
    swizzles).
    """
    swizzles: list[Swizzle] = []
    outer: list[Layout] = []
    for layout in (a, b):
        if type(layout) is ComposedLayout:
            if type(layout.inner) is not Swizzle:
                raise LayoutError(Code.COMPOSED_UNSUPPORTED, f"{layout} has no contiguous elements to compare")
            swizzles.append(layout.inner)
            outer.append(layout.outer)
        elif type(layout) is Layout:
            outer.append(layout)
    same = len(swizzles) == 2 and swizzles[0] == swizzles[1]
    return (outer[0], outer[1]), None if same else 1 << min(s.base for s in swizzles)


def max_alignment(layout: LayoutLike) -> int:
    """The largest number of elements that divides the index of every contiguous run of `layout`, counting
    from 0.

    A dynamic stride counts as 0, a dynamic extent as 1, as in CuTe.
    """
    if type(layout) is ComposedLayout:
        if type(layout.inner) is not Swizzle:
            return 1
        offset = layout.offset if is_static(layout.offset) else 1
        return tuple_gcd(1 << layout.inner.base, offset, max_alignment(layout.outer))
    return layout.max_alignment
