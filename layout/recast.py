# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Seeing the same memory as wider or narrower elements (CuTe's upcast, downcast and recast_layout)."""

from math import gcd
from typing import Any

from .core import ComposedLayout, Layout, LayoutLike
from .errors import Code, LayoutError
from .integers import Tree, ceil_div_int, floordiv, is_dynamic, is_static, mul
from .inttuple import leaves
from .modes import compose_parts
from .swizzle import Swizzle


def upcast(layout: LayoutLike, n: int) -> Any:
    """`layout` of elements `n` times as wide: groups of `n` contiguous elements become one.

    Raises `LayoutError` (E0203) if `n` and a stride do not divide each other.
    """
    if type(layout) is ComposedLayout:
        offset = floordiv(layout.offset, n)
        outer = _upcast_swizzle(layout.outer, n) if type(layout.outer) is Swizzle else upcast(layout.outer, n)
        return compose_parts(outer, offset, upcast(layout.inner, n))
    assert type(layout) is Layout
    if n < 1:
        raise LayoutError(Code.BAD_ARGUMENT, f"elements cannot become {n} times as wide")
    return Layout(*_upcast(layout.shape, layout.stride, n))


def _upcast(shape: Tree, stride: Any, n: int) -> tuple[Any, Any]:
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
            f"elements {n} times as wide do not fit stride {stride}: neither divides the other",
        )
    wide = -(-step // n)
    return ceil_div_int(shape, -(-n // step)), wide if stride > 0 else -wide


def downcast(layout: LayoutLike, n: int) -> Any:
    """`layout` of elements split into `n` narrower ones. Raises `LayoutError` (E0212) without a mode of
    stride 1; dynamic strides are taken to be larger.
    """
    if type(layout) is ComposedLayout:
        outer = _downcast_swizzle(layout.outer, n) if type(layout.outer) is Swizzle else downcast(layout.outer, n)
        return compose_parts(outer, mul(layout.offset, n), downcast(layout.inner, n))
    assert type(layout) is Layout
    if n < 1:
        raise LayoutError(Code.BAD_ARGUMENT, f"elements cannot be split into {n} parts")
    if not any(d == 1 if is_static(d) else is_dynamic(d) for d in leaves(layout.stride)):
        raise LayoutError(
            Code.NO_ADJACENT_ELEMENTS,
            f"the elements of {layout} cannot be split: no mode has the static stride 1",
        )
    return Layout(*_downcast(layout.shape, layout.stride, n))


def _downcast(shape: Tree, stride: Any, n: int) -> tuple[Any, Any]:
    if isinstance(shape, tuple):
        parts = [_downcast(s, d, n) for s, d in zip(shape, stride, strict=True)]
        return tuple([p[0] for p in parts]), tuple([p[1] for p in parts])
    if is_static(stride) and abs(stride) == 1:
        return mul(shape, n), stride
    return shape, mul(stride, n)


def recast_layout(layout: LayoutLike, old_bits: int, new_bits: int) -> Any:
    """`layout` of elements of `old_bits` bits, seen as elements of `new_bits` bits.

    Raises `LayoutError` where `upcast` or `downcast` would.
    """
    if old_bits < 1 or new_bits < 1:
        raise LayoutError(
            Code.BAD_ARGUMENT, f"elements of {old_bits} bits cannot be seen as elements of {new_bits} bits"
        )
    common = gcd(old_bits, new_bits)
    up, down = new_bits // common, old_bits // common
    if up > 1:
        layout = upcast(layout, up)
    return downcast(layout, down) if down > 1 else layout


def _log2(n: int) -> int:
    if n < 1 or n & (n - 1):
        raise LayoutError(Code.BAD_ARGUMENT, f"a swizzle can be recast by powers of two only, not by {n}")
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
