# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Coordinates to indices and back (CuTe's stride.hpp).

An integer stands for the coordinate with that place in colexicographic order: the first mode runs fastest.
The last mode takes the rest, so an index beyond the shape runs on in the last mode.
"""

from collections.abc import Iterator

from ...base.errors import Code, LayoutError
from .integers import AnyInt, AnyTuple, Tree, add, choose, floordiv, mod, mul
from .inttuple import compact_major, flatten_to_tuple, product, product_like, show, zip_modes


def crd2idx(coord: Tree, shape: Tree, stride: AnyTuple) -> AnyInt:
    """The index of `coord` in the layout `shape:stride`; an underscore counts as 0.

    With basis strides the result is a coordinate: a tuple. Raises `LayoutError` (E0201) if `coord` does not
    fit `shape`.
    """
    if not isinstance(shape, tuple):
        if isinstance(coord, tuple):
            raise LayoutError(Code.PROFILE_MISMATCH, f"coordinate {show(coord)} is deeper than the shape {show(shape)}")
        return mul(0 if coord is None else coord, stride)
    result: AnyTuple = 0
    if isinstance(coord, tuple):
        if len(coord) != len(shape):
            raise LayoutError(
                Code.PROFILE_MISMATCH,
                f"coordinate {show(coord)} has rank {len(coord)}, the shape {show(shape)} has rank {len(shape)}",
            )
        for c, s, d in zip(coord, shape, stride, strict=True):
            if type(c) is int and type(d) is int and type(result) is int and type(s) is int:
                result += c * d
            else:
                result = add(result, crd2idx(c, s, d))
        return result
    rest: AnyTuple = 0 if coord is None else coord
    for s, d in zip(shape[:-1], stride, strict=False):
        if type(s) is int and type(d) is int and type(rest) is int and type(result) is int and s:
            result += rest % s * d
            rest //= s
        else:
            size = product(s)
            following = floordiv(rest, size)
            result = add(result, crd2idx(mod(rest, size), s, d))
            rest = following
    return add(result, crd2idx(rest, shape[-1], stride[-1])) if shape else result


def crd2idx_in_shape(coord: Tree, shape: Tree) -> AnyTuple:
    """The place of `coord` in the colexicographic order of `shape`."""
    if not isinstance(coord, tuple):
        return coord
    flat_shape = flatten_to_tuple(product_like(shape, coord))
    flat_coord = flatten_to_tuple(coord)
    result = 0
    for c, s in zip(reversed(flat_coord), reversed(flat_shape), strict=True):
        result = add(c, mul(s, result))
    return result


def idx2crd(idx: Tree, shape: Tree, stride: Tree = None) -> AnyTuple:
    """The coordinate of `idx`, with the profile of `shape`.

    Without `stride`, that of the colexicographic order. With a compact `stride`, the coordinate that the
    layout `shape:stride` maps to `idx`.
    """
    if stride is not None:
        return _idx2crd_strided(idx, shape, stride)
    if not isinstance(shape, tuple):
        if isinstance(idx, tuple):
            raise LayoutError(Code.PROFILE_MISMATCH, f"index {show(idx)} is deeper than the shape {show(shape)}")
        return idx
    if isinstance(idx, tuple):
        return tuple([idx2crd(i, s) for i, s in zip_modes(idx, shape)])
    result: list[AnyTuple] = []
    for s in shape[:-1]:
        size = product(s)
        following = floordiv(idx, size)
        result.append(idx2crd(mod(idx, size), s))
        idx = following
    return (*result, *(idx2crd(idx, s) for s in shape[-1:]))


def _idx2crd_strided(idx: Tree, shape: Tree, stride: Tree) -> AnyTuple:
    if isinstance(shape, tuple):
        if isinstance(idx, tuple):
            return tuple([_idx2crd_strided(i, s, d) for i, (s, d) in zip_modes(idx, tuple(zip_modes(shape, stride)))])
        strides = stride if isinstance(stride, tuple) else compact_major(shape, stride)
        return tuple([_idx2crd_strided(idx, s, d) for s, d in zip_modes(shape, strides)])
    if isinstance(idx, tuple):
        raise LayoutError(Code.PROFILE_MISMATCH, f"index {show(idx)} is deeper than the shape {show(shape)}")
    if type(shape) is int and shape == 1:
        return 0
    return mod(floordiv(idx, stride), shape)


def crd2crd(coord: Tree, source: Tree, target: Tree) -> AnyTuple:
    """The coordinate into shape `target` at the same place as `coord` in shape `source`."""
    if isinstance(coord, tuple) and isinstance(source, tuple) and isinstance(target, tuple):
        return tuple([crd2crd(c, s, t) for (c, s), t in zip_modes(tuple(zip_modes(coord, source)), target)])
    return idx2crd(crd2idx_in_shape(coord, source), target)


def increment(coord: Tree, shape: Tree) -> AnyTuple:
    """The coordinate after `coord` in the colexicographic order of `shape`, which has its profile.

    The last mode runs on beyond its extent (CuTe's int_tuple.hpp).
    """
    return _increment(coord, shape, 1, last=True)[0]


def _increment(coord: Tree, shape: Tree, carry: object, last: bool) -> tuple[AnyTuple, AnyTuple]:
    """`coord` advanced by `carry` (0 or 1), and the carry into the next mode."""
    if isinstance(shape, tuple):
        modes: list[AnyTuple] = []
        for i, (c, s) in enumerate(zip_modes(coord, shape)):
            mode, carry = _increment(c, s, carry, last and i == len(shape) - 1)
            modes.append(mode)
        return tuple(modes), carry
    if type(carry) is int and carry == 0:
        return coord, 0
    following = add(coord, carry)
    if last:
        return following, 0
    inside = following < shape
    return choose(inside, following, 0), choose(inside, 0, 1)


def fixed_modes(coord: Tree, shape: Tree) -> Iterator[tuple[AnyTuple, AnyTuple]]:
    """The integers of `coord`, which fits `shape`, from left to right, each with the size of the mode that it fixes."""
    if isinstance(coord, tuple) and isinstance(shape, tuple):
        for part, mode in zip(coord, shape, strict=True):
            yield from fixed_modes(part, mode)
    elif coord is not None:
        yield coord, product(shape)


def check_within(coord: Tree, shape: Tree, subject: str) -> None:
    """Raises `LayoutError` (E0215) if a static integer of `coord` is out of range for its static mode of `shape`,
    which is the shape of `subject`.
    """
    for integer, extent in fixed_modes(coord, shape):
        if type(integer) is int and type(extent) is int and not 0 <= integer < extent:
            raise LayoutError(
                Code.COORDINATE_OUTSIDE,
                f"the coordinate {show(coord)} is out of range for {show(shape)}, the shape of {subject}",
                f"take one from 0 to {extent - 1} where {integer} stands",
            )
