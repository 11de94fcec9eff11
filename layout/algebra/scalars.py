# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Integers that are known only at run time: those of a tensor that fill the `?` in the layout of a parameter, and one
that counts as dynamic although its value is known.
"""

import operator
from collections.abc import Callable
from typing import Any, final

from ...base.errors import Code, LayoutError
from .core import ComposedLayout, Layout, LayoutLike
from .integers import Unknown
from .inttuple import congruent, leaves, transform_leaves, unflatten


def scalars_of(parameter: Layout, given: LayoutLike) -> list[int]:
    """The values of the `?` of a parameter's layout, those of its shape first, from the layout of a tensor.

    Raises `LayoutError` (E3106), if `given` is nested differently, differs in a static integer, or has an integer
    that its divisor does not divide or that is too wide.
    """
    if isinstance(given, ComposedLayout):
        raise _misfit(f"{given} is swizzled, and the parameter is plain")
    if not isinstance(parameter.shape, tuple) and isinstance(given.shape, tuple) and len(given) == 1:
        given = given[0]
    if not congruent(parameter.shape, given.shape):
        raise _misfit(f"{given} is nested differently from {parameter}", _nested_alike(parameter, given))
    scalars: list[int] = []
    extents = [None for _ in leaves(given.shape)]
    for expected, value, extent in zip(
        _integers(parameter), _integers(given), (*extents, *leaves(given.shape)), strict=True
    ):
        if extent == 1 and (value != expected if isinstance(expected, int) else value % expected.div):
            scalars += [] if isinstance(expected, int) else [0]  # no step is made along a mode of one element
            continue
        if not isinstance(value, int):
            raise _misfit(f"its layout {given} is not static")
        if not isinstance(expected, Unknown):
            if value != expected:
                raise _misfit(f"its layout is {given}: {value} stands where {expected} belongs")
            continue
        if value % expected.div:
            raise _misfit(f"its layout is {given}: {value} is not a multiple of {expected.div}")
        if not 0 <= value < 1 << (expected.width - 1):
            raise _misfit(f"its layout is {given}: {value} does not fit in {expected.width} bits")
        scalars.append(value)
    return scalars


def _integers(layout: Layout) -> list[Any]:
    return [*leaves(layout.shape), *leaves(layout.stride)]


def _nested_alike(parameter: Layout, given: Layout) -> str:
    """The hint to nest `given` as the parameter is, if both have the same number of extents."""
    shape, stride = [*leaves(given.shape)], [*leaves(given.stride)]
    if len(shape) != len([*leaves(parameter.shape)]):
        return "give the tensor as many modes as the parameter, nested alike"
    return f"write {Layout(unflatten(shape, parameter.shape), unflatten(stride, parameter.stride))}"


def _misfit(problem: str, hint: str = "only the ? of the parameter's type can differ between launches") -> LayoutError:
    return LayoutError(Code.RUN_ARGUMENT, problem, hint)


@final
class RunTimeInt:
    """A dynamic integer of a known `value`; every operation on it yields another. Prints as the value."""

    __slots__ = ("value",)

    def __init__(self, value: int) -> None:
        self.value = value

    def __str__(self) -> str:
        return str(self.value)

    __repr__ = __str__


def value_of(x: Any) -> Any:
    """The value of a run-time integer; a tuple with those in it; anything else unchanged."""
    return transform_leaves(lambda leaf: leaf.value if isinstance(leaf, RunTimeInt) else leaf, x)


def run_time(x: Any) -> Any:
    """A coordinate or a shape with its static integers made run-time ones; underscores are kept."""
    return transform_leaves(lambda leaf: RunTimeInt(leaf) if type(leaf) is int else leaf, x)


def _operator(name: str) -> Callable[[RunTimeInt, Any], RunTimeInt]:
    apply = getattr(operator, name)
    return lambda self, other: RunTimeInt(apply(self.value, value_of(other)))


def _make_reflected(name: str) -> Callable[[RunTimeInt, Any], RunTimeInt]:
    apply = getattr(operator, name)
    return lambda self, other: RunTimeInt(apply(value_of(other), self.value))


for _name in ("add", "sub", "mul", "floordiv", "mod", "and", "or", "xor", "lshift", "rshift"):
    setattr(RunTimeInt, f"__{_name}__", _operator(f"__{_name}__"))
    setattr(RunTimeInt, f"__r{_name}__", _make_reflected(f"__{_name}__"))
for _name in ("__lt__", "__le__", "__gt__", "__ge__"):
    setattr(RunTimeInt, _name, _operator(_name))
