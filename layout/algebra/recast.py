# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Seeing the same memory as wider or narrower elements (CuTe's upcast, downcast and recast_layout)."""

from math import gcd

from ...base.errors import Code, LayoutError
from .core import AnyLayout, ComposedLayout, Layout, LayoutLike
from .integers import AnyTuple, Tree, ceil_div_int, floordiv, is_dynamic, is_static, mul
from .inttuple import leaves, unflatten
from .modes import compose_parts
from .swizzle import Swizzle


def upcast(layout: LayoutLike, n: int) -> AnyLayout:
    """`layout` of elements `n` times as wide: groups of `n` contiguous elements become one.

    Raises `LayoutError` (E0203) if `n` and a stride do not divide each other, or `n` does not divide the offset of a
    composed layout; E0213 if `n` is less than 1.
    """
    if n < 1:
        raise LayoutError(Code.BAD_ARGUMENT, f"elements cannot become {n} times as wide")
    if type(layout) is ComposedLayout:
        if is_static(layout.offset) and layout.offset % n:
            problem = f"elements {n} times as wide do not begin at the offset {layout.offset}"
            raise LayoutError(Code.STRIDE_DIVISIBILITY, problem, f"use an offset that is a multiple of {n}")
        offset = floordiv(layout.offset, n)
        inner = _upcast_swizzle(layout.inner, n) if type(layout.inner) is Swizzle else upcast(layout.inner, n)
        return compose_parts(inner, offset, upcast(layout.outer, n))
    assert type(layout) is Layout
    return Layout(*_upcast(layout.shape, layout.stride, n))


def _upcast(shape: Tree, stride: AnyTuple, n: int) -> tuple[AnyTuple, AnyTuple]:
    if isinstance(shape, tuple):
        parts = [_upcast(s, d, n) for s, d in zip(shape, stride, strict=True)]
        return tuple([p[0] for p in parts]), tuple([p[1] for p in parts])
    if not is_static(stride):
        return shape, floordiv(stride, n)
    if stride == 0:
        return shape, stride
    step = abs(stride)
    if step % n and n % step:
        raise LayoutError(
            Code.STRIDE_DIVISIBILITY,
            f"elements {n} times as wide do not fit stride {stride}: they do not divide each other",
        )
    wide = -(-step // n)
    return ceil_div_int(shape, -(-n // step)), wide if stride > 0 else -wide


def downcast(layout: LayoutLike, n: int) -> AnyLayout:
    """`layout` of elements split into `n` narrower ones, which lie in the mode of stride 1.

    That is the first one whose extent is not 1. CuTe splits every mode of stride 1, so that a second one, such as a
    mode of one element, counts the same narrow elements again. Raises `LayoutError` (E0212) without a mode of stride 1;
    dynamic strides are taken to be larger.
    """
    if type(layout) is ComposedLayout:
        inner = _downcast_swizzle(layout.inner, n) if type(layout.inner) is Swizzle else downcast(layout.inner, n)
        return compose_parts(inner, mul(layout.offset, n), downcast(layout.outer, n))
    assert type(layout) is Layout
    if n < 1:
        raise LayoutError(Code.BAD_ARGUMENT, f"elements cannot be split into {n} parts")
    shape, stride = list(leaves(layout.shape)), list(leaves(layout.stride))
    ones = [mode for mode, d in enumerate(stride) if is_static(d) and d == 1]
    if not ones and not any(map(is_dynamic, stride)):
        raise LayoutError(
            Code.NO_ADJACENT_ELEMENTS, f"the elements of {layout} cannot be split: no mode has the static stride 1"
        )
    stride = [mul(d, n) for d in stride]
    if ones:
        adjacent = next((mode for mode in ones if not is_static(shape[mode]) or shape[mode] != 1), ones[0])
        shape[adjacent], stride[adjacent] = mul(shape[adjacent], n), 1
    return Layout(unflatten(shape, layout.shape), unflatten(stride, layout.shape))


def recast_layout(layout: LayoutLike, old_bits: int, new_bits: int) -> AnyLayout:
    """`layout` of elements of `old_bits` bits, seen as elements of `new_bits` bits.

    Raises `LayoutError` if `upcast` or `downcast` would.
    """
    if old_bits < 1 or new_bits < 1:
        raise LayoutError(
            Code.BAD_ARGUMENT, f"elements of {old_bits} bits cannot be viewed as elements of {new_bits} bits"
        )
    common = gcd(old_bits, new_bits)
    up, down = new_bits // common, old_bits // common
    if up > 1:
        layout = upcast(layout, up)
    return downcast(layout, down) if down > 1 else layout


def _log2(n: int) -> int:
    if n < 1 or n & (n - 1):
        raise LayoutError(Code.BAD_ARGUMENT, f"a swizzle can be recast only by powers of two, not by {n}")
    return n.bit_length() - 1


def _upcast_swizzle(swizzle: Swizzle, n: int) -> Swizzle:
    base = swizzle.base - _log2(n)
    return (
        Swizzle(swizzle.bits, base, swizzle.shift)
        if base >= 0
        else Swizzle(max(swizzle.bits + base, 0), 0, swizzle.shift)
    )


def _downcast_swizzle(swizzle: Swizzle, n: int) -> Swizzle:
    return Swizzle(swizzle.bits, swizzle.base + _log2(n), swizzle.shift)
