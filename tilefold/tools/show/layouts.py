# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Layouts as the values of options."""

from tilefold.base.errors import Code, LayoutError
from tilefold.layout.algebra.core import Layout, LayoutLike, make_layout, plain_layout
from tilefold.layout.algebra.integers import Unknown
from tilefold.layout.algebra.inttuple import leaves
from tilefold.layout.text.layouts import parse_int_tuple, parse_layout


def static_layout(text: str) -> LayoutLike:
    """A layout; a shape alone stands for the compact layout of it, first mode fastest."""
    layout = _layout(text)
    outer = layout if isinstance(layout, Layout) else layout.outer
    subject = "the layout" if isinstance(layout, Layout) else "a swizzled layout"
    offset = () if isinstance(layout, Layout) else (layout.offset,)
    if not all(type(leaf) is int for leaf in leaves((outer.shape, outer.stride, *offset))):
        raise LayoutError(
            Code.DYNAMIC_UNSUPPORTED, f"{subject} must be static, of integers", "write a number for every '?'"
        )
    return layout


def _layout(text: str) -> LayoutLike:
    return parse_layout(text) if ":" in text else make_layout(parse_int_tuple(text))


def tensor_layout(text: str) -> LayoutLike:
    """The layout of a tensor, in which `?` stands for an integer of run time; a shape alone for the compact layout."""
    layout = _layout(text)
    return layout if isinstance(layout, Layout) else static_layout(text)


def unswizzled_layout(text: str) -> Layout:
    """A layout without a swizzle."""
    layout = static_layout(text)
    if not isinstance(layout, Layout):
        raise LayoutError(Code.COMPOSED_UNSUPPORTED, "the layouts of a tiled copy must be plain, without a swizzle")
    return layout


def has_unknowns(layout: LayoutLike) -> bool:
    """Whether integers of a layout have no value."""
    plain = plain_layout(layout)
    return any(isinstance(leaf, Unknown) for leaf in leaves((plain.shape, plain.stride)))
