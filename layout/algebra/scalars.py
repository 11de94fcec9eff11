# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensors for parameters whose layouts have `?`: do they fit, and what are the `?`."""

from typing import Any

from ...base.errors import Code, LayoutError
from .core import ComposedLayout, Layout, LayoutLike
from .inttuple import congruent, leaves
from .unknown import Unknown


def scalars_of(parameter: Layout, given: LayoutLike) -> list[int]:
    """The values of the `?` of a parameter's layout, those of its shape first, from the layout of a tensor.

    Raises `LayoutError` (E3106), which says what of `given` does not fit: its profile, an integer that the parameter
    says otherwise, one that the divisor does not divide or that is too wide.
    """
    if isinstance(given, ComposedLayout):
        raise _misfit(f"it is swizzled, {given}, and the parameter is plain")
    if not isinstance(parameter.shape, tuple) and isinstance(given.shape, tuple) and len(given) == 1:
        given = given[0]
    if not congruent(parameter.shape, given.shape):
        raise _misfit(f"its layout is {given}, which has not the profile of {parameter}")
    found: list[int] = []
    extents = [None for _ in leaves(given.shape)]
    for expected, value, extent in zip(
        _integers(parameter), _integers(given), (*extents, *leaves(given.shape)), strict=True
    ):
        if extent == 1 and (value != expected if isinstance(expected, int) else value % expected.div):
            found += [] if isinstance(expected, int) else [0]  # no step is made along a mode of one element
            continue
        if not isinstance(value, int):
            raise _misfit(f"its layout {given} is not static")
        if not isinstance(expected, Unknown):
            if value != expected:
                raise _misfit(f"its layout is {given}: {value} stands where the parameter has {expected}")
            continue
        if value % expected.div:
            raise _misfit(f"its layout is {given}: {value} is no multiple of {expected.div}")
        if not 0 <= value < 1 << (expected.width - 1):
            raise _misfit(f"its layout is {given}: {value} does not fit in {expected.width} bits")
        found.append(value)
    return found


def _integers(layout: Layout) -> list[Any]:
    return [*leaves(layout.shape), *leaves(layout.stride)]


def _misfit(problem: str) -> LayoutError:
    return LayoutError(Code.RUN_ARGUMENT, problem, "the parameter's type says what may differ from launch to launch")
