# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Layouts with basis strides, axis by axis: along one axis the strides are integers.

A basis's path names an axis: `2@1` is a step of 2 along axis 1, `3@0@1` one of 3 along axis 0 of axis 1.
"""

from collections.abc import Callable
from typing import Any

from .coalesce import coalesce
from .core import Layout, join
from .integers import AnyTuple, IntTuple, ScaledBasis, Tree, as_coordinate, mul
from .inttuple import flatten_to_tuple, transform_leaves


def has_basis(stride: Tree) -> bool:
    """Whether a scaled basis stands among the strides."""
    for d in flatten_to_tuple(stride):  # noqa: SIM110 (a generator is slower on the few leaves that there are)
        if type(d) is ScaledBasis:
            return True
    return False


def coprofile(stride: IntTuple) -> AnyTuple:
    """The profile of the coordinates that basis strides yield, with leaves 0; None for integer strides."""
    bases = [d for d in flatten_to_tuple(stride) if type(d) is ScaledBasis]
    profile = 0
    for basis in bases:
        profile = _merge(profile, as_coordinate(ScaledBasis(0, basis.path)))
    return profile if bases else None


def _merge(a: Tree, b: Tree) -> AnyTuple:
    if not isinstance(a, tuple) or not isinstance(b, tuple):
        return a if isinstance(a, tuple) else b
    if len(a) < len(b):
        a, b = b, a
    return (*(_merge(x, y) for x, y in zip(a, b, strict=False)), *a[len(b) :])


def along(layout: Layout, path: tuple[int, ...]) -> Layout:
    """`layout` as it moves along one axis: the integers of that axis's bases, and 0 where it moves along others.

    With integer strides there is one axis, whose path is empty.
    """

    def step(d: object) -> Any:
        if type(d) is ScaledBasis:
            return d.value if d.path == path else 0
        return d if path == () else 0

    return Layout(layout.shape, transform_leaves(step, layout.stride))


def by_axis(layout: Layout, f: Callable[[tuple[int, ...], Layout], Layout]) -> Layout:
    """The layout, in the profile of the axes of `layout`, of the results of `f` for the modes along each.

    `f` gets the axis's path and the layout of the modes along it, with integer strides (1:0 for none); the
    strides of its result become bases of the axis.
    """

    def along_axis(path: tuple[int, ...]) -> Layout:
        part = f(path, _modes_along(layout, path))
        return Layout(part.shape, transform_leaves(lambda d: ScaledBasis(d, path) if d != 0 else d, part.stride))

    return _tree(coprofile(layout.stride), (), along_axis)


def by_axis_inverse(layout: Layout, f: Callable[[list[object], list[object], list[object]], Layout]) -> Layout:
    """The layout, in the profile of the axes of `layout`, of the results of `f` for shape, stride and steps along each.

    The step of a mode is the distance of its coordinates in the colexicographic order of `layout`.
    """
    plain: Layout = coalesce(layout)
    shape, stride = flatten_to_tuple(plain.shape), flatten_to_tuple(plain.stride)
    steps = [1]
    for s in shape:
        steps.append(mul(s, steps[-1]))

    def along_axis(path: tuple[int, ...]) -> Layout:
        kept = [i for i, d in enumerate(stride) if type(d) is ScaledBasis and d.path == path]
        return f([shape[i] for i in kept], [stride[i].value for i in kept], [steps[i] for i in kept])

    return _tree(coprofile(layout.stride), (), along_axis)


def _modes_along(layout: Layout, path: tuple[int, ...]) -> Layout:
    modes = zip(flatten_to_tuple(layout.shape), flatten_to_tuple(layout.stride), strict=True)
    kept = [Layout(s, d.value) for s, d in modes if type(d) is ScaledBasis and d.path == path]
    return join(kept) if kept else Layout(1, 0)


def _tree(profile: Tree, path: tuple[int, ...], leaf: Callable[[tuple[int, ...]], Layout]) -> Layout:
    if isinstance(profile, tuple):
        return join([_tree(part, (*path, i), leaf) for i, part in enumerate(profile)])
    return leaf(path)
