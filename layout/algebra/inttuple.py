# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Nested tuples of integers: shapes, strides and their profiles (CuTe's int_tuple.hpp and
tuple_algorithms.hpp).

A leaf counts as a tuple of rank 1 and depth 0; `(8,)` and `8` are different profiles of the same size.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import Any, cast

from ...base.errors import Code, LayoutError
from .integers import AnyTuple, IntTuple, ScaledBasis, Tree, ceil_div_int, mul, shape_div_int

MAX_LEAVES = 4096
"""No result may hold more leaves than this: it bounds the work on hostile input."""


def wrap(t: Tree) -> tuple[Any, ...]:
    """`t` as a tuple: a leaf becomes a tuple of one."""
    return t if isinstance(t, tuple) else (t,)


def unwrap(t: Tree) -> AnyTuple:
    """`t` without its tuples of one element."""
    while isinstance(t, tuple) and len(t) == 1:
        t = t[0]
    return t


def leaves(t: Tree) -> Iterator[AnyTuple]:
    """The leaves of `t`, from left to right."""
    if isinstance(t, tuple):
        for x in t:
            yield from leaves(x)
    else:
        yield t


def flatten_to_tuple(t: Tree) -> tuple[AnyTuple, ...]:
    """The leaves of `t` as one flat tuple; a leaf gives a tuple of one."""
    if not isinstance(t, tuple):
        return (t,)
    for x in t:
        if type(x) is tuple:
            result: list[AnyTuple] = []
            _collect(t, result)
            return tuple(result)
    return t


def _collect(t: tuple[object, ...], result: list[object]) -> None:
    for x in t:
        if type(x) is tuple:
            _collect(cast(tuple[Any, ...], x), result)
        else:
            result.append(x)


def flatten(t: Tree) -> AnyTuple:
    """`t` as a flat tuple of its leaves; a leaf stays a leaf."""
    return flatten_to_tuple(t) if isinstance(t, tuple) else t


def unflatten(flat: Sequence[object], profile: Tree) -> AnyTuple:
    """The leaves `flat`, in order, in the profile of `profile`. Raises `LayoutError` if their numbers
    differ.
    """
    source = iter(flat)
    count = sum(1 for _ in leaves(profile))
    if count != len(flat):
        raise LayoutError(Code.PROFILE_MISMATCH, f"{len(flat)} leaves do not fill a profile of {count}")
    return transform_leaves(lambda _: next(source), profile)


def transform_leaves(f: Callable[[Any], object], t: Tree) -> AnyTuple:
    """`t` with `f` applied to each leaf."""
    if isinstance(t, tuple):
        return tuple([transform_leaves(f, x) for x in t])
    return f(t)


def repeat_like(t: Tree, x: object) -> AnyTuple:
    """The profile of `t` with each leaf `x`."""
    return tuple([repeat_like(a, x) for a in t]) if isinstance(t, tuple) else x


def rank(t: Tree) -> int:
    """The number of modes of `t`; 1 for a leaf."""
    return len(t) if isinstance(t, tuple) else 1


def depth(t: Tree) -> int:
    """How deep `t` nests; 0 for a leaf."""
    return 1 + max(map(depth, t), default=0) if isinstance(t, tuple) else 0


def product(t: Tree) -> Any:
    """The product of the leaves of `t`: the size of a shape; 1 for an empty tuple."""
    if not isinstance(t, tuple):
        return t
    result = 1
    for x in t:
        x = product(x) if isinstance(x, tuple) else x
        result = result * x if type(x) is int and type(result) is int else mul(result, x)
    return result


def product_each(t: Tree) -> tuple[AnyTuple, ...]:
    """The size of each mode of `t`."""
    return tuple([product(x) for x in wrap(t)])


def product_like(t: Tree, guide: Tree) -> AnyTuple:
    """The sizes of the parts of `t` that stand at the leaves of `guide`. Raises `LayoutError` if `t` is
    shallower.
    """
    if not isinstance(guide, tuple):
        return product(t)
    return tuple([product_like(x, g) for x, g in zip_modes(t, guide)])


def zip_modes(a: Tree, b: Tree) -> "zip[tuple[Any, Any]]":
    """The modes of two tuples, paired. Raises `LayoutError` (E0201) unless both are tuples of one rank."""
    if not isinstance(a, tuple) or not isinstance(b, tuple) or len(a) != len(b):
        raise LayoutError(Code.PROFILE_MISMATCH, f"{show(a)} and {show(b)} are nested differently")
    return zip(a, b, strict=True)


def show(t: Tree) -> str:
    """`t` in CuTe's notation, for messages: `(8,(2,?))`; None is `_`."""
    if isinstance(t, tuple):
        return "(" + ",".join([show(x) for x in t]) + ")"
    return "_" if t is None else str(t)


def is_fully_static(t: Tree) -> bool:
    """Whether every leaf of `t` is a static integer, or a basis with a static value."""
    if isinstance(t, tuple):
        return all(map(is_fully_static, t))
    return type(t.value if type(t) is ScaledBasis else t) is int


def are_static(leaves: Sequence[object]) -> bool:
    """Whether all of a flat sequence are static integers."""
    for x in leaves:  # noqa: SIM110 (a generator is slower on the few leaves that there are)
        if type(x) is not int:
            return False
    return True


def has_underscore(t: Tree) -> bool:
    """Whether an underscore (None) stands somewhere in the coordinate `t`."""
    return any(map(has_underscore, t)) if isinstance(t, tuple) else t is None


def congruent(a: Tree, b: Tree) -> bool:
    """Whether `a` and `b` have the same profile."""
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(map(congruent, a, b))
    return not isinstance(a, tuple) and not isinstance(b, tuple)


def weakly_congruent(a: Tree, b: Tree) -> bool:
    """Whether `b` has the profile of `a` or refines it: a leaf of `a` may meet anything."""
    if isinstance(a, tuple):
        return isinstance(b, tuple) and len(a) == len(b) and all(map(weakly_congruent, a, b))
    return True


def compatible(a: Tree, b: Tree) -> bool:
    """Whether every coordinate into shape `a` is one into shape `b`: `b` refines `a` at equal sizes."""
    if isinstance(a, tuple):
        return isinstance(b, tuple) and len(a) == len(b) and all(map(compatible, a, b))
    return a == product(b)


def filter_zeros(stride: IntTuple, shape: IntTuple) -> IntTuple:
    """`shape` with extent 1 wherever `stride` is a static 0."""
    if isinstance(stride, tuple):
        return tuple([filter_zeros(d, s) for d, s in zip_modes(stride, shape)])
    return repeat_like(shape, 1) if type(stride) is int and stride == 0 else shape


def tuple_gcd(*tuples: IntTuple) -> int:
    """The greatest common divisor of all static leaves."""
    return math.gcd(*(x for t in tuples for x in leaves(t)))


def ceil_div(a: IntTuple, b: IntTuple) -> IntTuple:
    """How many tiles of shape `b` cover shape `a`, mode by mode.

    An integer `b` is used up by the modes of `a` from left to right; modes of `a` beyond the rank of a
    tuple `b` stay.
    """
    if isinstance(a, tuple):
        if isinstance(b, tuple):
            if len(b) > len(a):
                raise LayoutError(Code.RANK_MISMATCH, f"tile {show(b)} has more modes than shape {show(a)}")
            return (*(ceil_div(x, y) for x, y in zip(a, b, strict=False)), *a[len(b) :])
        result: list[IntTuple] = []
        for x in a:
            result.append(ceil_div(x, b))
            b = ceil_div(b, x)
        return tuple(result)
    return ceil_div_int(a, product(b))


def shape_div(a: IntTuple, b: IntTuple) -> IntTuple:
    """`ceil_div` of shapes that must divide each other.

    Raises `LayoutError` (E0204) if two static extents do not divide each other.
    """
    if isinstance(a, tuple):
        if isinstance(b, tuple):
            return tuple([shape_div(x, y) for x, y in zip_modes(a, b)])
        result: list[IntTuple] = []
        for x in a:
            result.append(shape_div(x, b))
            b = shape_div(b, x)
        return tuple(result)
    divisor = product(b)
    if type(a) is int and type(divisor) is int and (divisor == 0 or (a % divisor and divisor % a)):
        raise LayoutError(Code.SHAPE_DIVISIBILITY, f"the extents {a} and {divisor} do not divide each other")
    return shape_div_int(a, divisor)


def slice_tuple(coord: Tree, t: Tree) -> AnyTuple:
    """The modes of `t` that the underscores of `coord` keep, as a tuple (`t` itself if `coord` is an underscore)."""
    if coord is None:
        return t
    return tuple(_keep_modes(coord, t, keep_underscored=True)) if isinstance(coord, tuple) else ()


def dice_tuple(coord: Tree, t: Tree) -> AnyTuple:
    """The modes of `t` that the integers of `coord` keep, as a tuple (`t` itself if `coord` is an integer)."""
    if coord is None:
        return ()
    return tuple(_keep_modes(coord, t, keep_underscored=False)) if isinstance(coord, tuple) else t


def _keep_modes(coord: Tree, t: Tree, keep_underscored: bool) -> list[AnyTuple]:
    if isinstance(coord, tuple):
        result: list[AnyTuple] = []
        for c, x in zip_modes(coord, t):
            result += _keep_modes(c, x, keep_underscored)
        return result
    return [t] if (coord is None) == keep_underscored else []


def compact_major(shape: Tree, current: Tree = 1, row_major: bool = False) -> AnyTuple:
    """The strides that number `shape` without gaps, the first mode fastest (the last one if `row_major`).

    `current` is the stride of the fastest mode, or a tuple of them, one for each mode. Static extents of 1
    get stride 0 (CuTe's stride.hpp).
    """
    if isinstance(current, tuple):
        return tuple([compact_major(s, c, row_major) for s, c in zip_modes(shape, current)])
    return _compact(shape, current, row_major)[0]


def _compact(shape: Tree, current: object, row_major: bool) -> tuple[AnyTuple, AnyTuple]:
    if isinstance(shape, tuple):
        result: list[AnyTuple] = []
        for s in reversed(shape) if row_major else shape:
            if type(s) is int and type(current) is int:
                result.append(current if s != 1 else 0)
                current *= s
            else:
                strides, current = _compact(s, current, row_major)
                result.append(strides)
        return tuple(reversed(result)) if row_major else tuple(result), current
    if type(shape) is int and shape == 1:
        return 0, current
    return current, mul(current, shape)


def compact_order(shape: IntTuple, order: IntTuple) -> AnyTuple:
    """The strides that number `shape` without gaps, modes with a smaller leaf in `order` faster (CuTe's stride.hpp).

    Modes whose leaves are equal begin at the same stride, as in CuTe, so that coordinates of theirs share an index:
    only an order without equal leaves of modes larger than 1 numbers each coordinate by itself. Dynamic leaves come
    after all static ones, from left to right.
    """
    sizes = flatten_to_tuple(product_like(shape, order))
    keys = list(flatten_to_tuple(order))
    largest = max([k for k in keys if type(k) is int], default=0)
    keys = [k if type(k) is int else largest + 1 + i for i, k in enumerate(keys)]
    starts = [1] * len(keys)
    faster = 1
    for _, equal in groupby(sorted(range(len(keys)), key=keys.__getitem__), keys.__getitem__):
        start = faster
        for i in equal:
            starts[i] = start
            faster = mul(faster, sizes[i])
    return compact_major(shape, unflatten(starts, order))
