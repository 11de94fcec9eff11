# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The scalars of a tensor: the values that its `?` have at run time, those of the shape first, then of the stride."""

from collections.abc import Sequence
from typing import Any

from ..layout.algebra.core import ComposedLayout, LayoutLike, plain_layout
from ..layout.algebra.unknown import Unknown
from .cute.values import integers, map_integers


def unknowns(layout: LayoutLike) -> list[Unknown]:
    """What is known of each scalar, in their order. The offset of a swizzle is none of them."""
    return [x for x in integers(plain_layout(layout)) if isinstance(x, Unknown)]


def with_scalars(layout: LayoutLike, values: Sequence[Any]) -> Any:
    """`layout` with `values` in place of its `?`."""
    if not values:
        return layout
    rest = iter(values)
    filled = map_integers(lambda x: next(rest) if isinstance(x, Unknown) else x, plain_layout(layout))
    return ComposedLayout(layout.inner, layout.offset, filled) if isinstance(layout, ComposedLayout) else filled
