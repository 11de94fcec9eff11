# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Values that are adjacent in memory, and the distances between those that are not, as far as types know them."""

from math import gcd

from .coalesce import coalesce
from .core import ComposedLayout, LayoutLike, flat_modes, plain_layout
from .swizzle import Swizzle
from .unknown import divisor


def contiguous_values(layout: LayoutLike) -> int:
    """How many values from coordinate 0 on follow each other in memory, in order, wherever the layout starts.

    For a swizzled layout at most its period of unmoved elements, and only as far as its offset keeps them together.
    """
    extent, stride = next(flat_modes(coalesce(plain_layout(layout))))
    run = divisor(extent) if stride == 1 else 1
    if not isinstance(layout, ComposedLayout):
        return run
    assert isinstance(layout.inner, Swizzle)
    return gcd(run, 1 << layout.inner.base, divisor(layout.offset))


def steps(layout: LayoutLike) -> int:
    """The greatest number of elements that divides every distance between coordinates of `layout`; 0 if there are
    none.
    """
    return gcd(*[divisor(stride) for extent, stride in flat_modes(layout) if extent != 1])
