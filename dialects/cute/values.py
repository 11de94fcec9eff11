# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The values behind the types of the `cute` dialect, seen as trees of integers.

A value is a nested tuple of integers, bases and underscores (None); a layout, a composed layout or a swizzle; or, for a
tile, a nested tuple of layouts and underscores. Its integers are static, `Unknown` in a type, or a pass's SSA values.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

from ...base.errors import Code, LayoutError
from ...layout.algebra.core import ComposedLayout, Layout, LayoutLike, plain_layout
from ...layout.algebra.integers import ScaledBasis, Tree, Unknown
from ...layout.algebra.swizzle import Swizzle

Value: TypeAlias = "Tree | ComposedLayout | Swizzle"
"""The value that a type of the dialect holds."""
AnyValue: TypeAlias = Any
"""A `Value` of a kind that follows from the operands, on which callers rely."""


def map_integers(f: Callable[[Any], Any], value: Value) -> AnyValue:
    """`value` with `f` applied to each of its integers, in the order of `integers`; a swizzle's stay."""
    if isinstance(value, tuple):
        return tuple([map_integers(f, part) for part in value])
    match value:
        case Layout():
            return Layout(map_integers(f, value.shape), map_integers(f, value.stride))
        case ComposedLayout():
            outer, offset = map_integers(f, value.outer), map_integers(f, value.offset)
            return ComposedLayout(map_integers(f, value.inner), offset, outer)
        case ScaledBasis():
            return ScaledBasis(f(value.value), value.path)
        case Swizzle() | None:
            return value
        case _:
            return f(value)


def integers(value: Value, *, paths: bool = False) -> Iterator[Any]:
    """The integers of a value, from left to right: a layout's shape first, a basis's factor.

    With `paths`, a basis's factor is followed by the mode indices of its path, outermost first. In a composed
    layout, those of the outer layout come first, then the offset's, then the inner function's. A swizzle has none: its
    parameters are always static.
    """
    if isinstance(value, tuple):
        for part in value:
            yield from integers(part, paths=paths)
        return
    match value:
        case Layout():
            yield from integers((value.shape, value.stride), paths=paths)
        case ComposedLayout():
            for part in (value.outer, value.offset, value.inner):
                yield from integers(part, paths=paths)
        case ScaledBasis():
            yield value.value
            if paths:
                yield from value.path
        case Swizzle() | None:
            return
        case _:
            yield value


def unknowns(layout: LayoutLike) -> list[Unknown]:
    """The scalars of a tensor: the known facts of the values of its `?` at run time, those of the shape first,
    then of the stride. The offset of a swizzle is not one of them.
    """
    return [x for x in integers(plain_layout(layout)) if isinstance(x, Unknown)]


def with_scalars(layout: LayoutLike, values: Sequence[object]) -> AnyValue:
    """`layout` with `values` in place of its `?`."""
    if not values:
        return layout
    rest = iter(values)
    filled = map_integers(lambda x: next(rest) if isinstance(x, Unknown) else x, plain_layout(layout))
    return ComposedLayout(layout.inner, layout.offset, filled) if isinstance(layout, ComposedLayout) else filled


def is_static_value(value: Value) -> bool:
    """Whether all integers of a value are static; underscores count as static."""
    return all(type(x) is int for x in integers(value))


def public(value: Value) -> AnyValue:
    """`value` as a type of the public IR can hold it, which keeps the width of a dynamic integer, not its divisors."""
    return map_integers(lambda x: Unknown(64 if x.width > 32 else 32) if type(x) is Unknown else x, value)


def undefined_error(message: str, code: Code = Code.BAD_ARGUMENT, hint: str = "") -> LayoutError:
    """The error of an operation whose operands it is not defined for."""
    return LayoutError(code, message, hint)


def typed(layout: LayoutLike) -> Any:
    """A layout as a type or an attribute holds it: of integers that are SSA values, the known facts."""
    return map_integers(lambda x: getattr(x, "known", x), layout)
