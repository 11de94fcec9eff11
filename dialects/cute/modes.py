# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Modes of the values of the `cute` dialect: the algebra of layouts, for tuples and tiles as well."""

from collections.abc import Sequence
from typing import Any, TypeAlias

from ...base.errors import Code
from ...layout.algebra import modes
from ...layout.algebra.core import ComposedLayout, Layout, rank
from ...layout.algebra.integers import Tree
from ...layout.algebra.inttuple import depth, wrap
from .values import AnyValue, undefined_error

Moded: TypeAlias = "Tree | ComposedLayout"
"""A value that has modes: any but a swizzle."""


def get(value: Moded, mode: Sequence[int] = ()) -> Any:
    """The part of a value that a path of mode indices names, outermost first; a leaf is its own mode 0.

    Raises `LayoutError` (E0208) where an index is out of range, or goes on after a leaf.
    """
    for level, index in enumerate(mode):
        if level and _is_leaf(value):
            raise undefined_error(f"the indices {list(mode)} go on after a leaf", Code.MODE_OUT_OF_RANGE)
        if not 0 <= index < rank(value):
            raise undefined_error(f"a value of {rank(value)} modes has no mode {index}", Code.MODE_OUT_OF_RANGE)
        value = value[index] if isinstance(value, tuple | Layout | ComposedLayout) else value
    return value


def _is_leaf(value: Moded) -> bool:
    shape = value.shape if isinstance(value, Layout | ComposedLayout) else value
    return depth(shape) == 0


def select(value: Moded, mode: Sequence[int]) -> AnyValue:
    """The named modes of a value, in that order, as modes of a new one. Raises `LayoutError` (E0208)."""
    for index in mode:
        get(value, (index,))
    if isinstance(value, Layout | ComposedLayout):
        return modes.select(value, *mode)
    return tuple([wrap(value)[index] for index in mode])


def pad(value: Any, n: int, element: Any, at_end: bool) -> AnyValue:
    """`value` with copies of `element` as further modes, up to rank `n`; a value of rank `n` or more stays as it is."""
    copies = (element,) * (n - rank(value))
    if not copies:
        return value
    if isinstance(value, Layout | ComposedLayout):
        return (modes.append if at_end else modes.prepend)(value, n, element)
    return (*wrap(value), *copies) if at_end else (*copies, *wrap(value))
