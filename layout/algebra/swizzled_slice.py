# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Slicing a swizzled layout as CuTe C++ does, which keeps the swizzle only where it must (swizzle_layout.hpp).

Where the modes that a slice keeps never reach two bits that the swizzle xors with each other, the swizzle only
adds to or takes from their strides, by the bits of the coordinate that was fixed: the slice is a plain layout.
The strides that depend on a run-time coordinate are run-time integers.

Elsewhere in tilefold a slice keeps its swizzle (`slicing.slice_and_offset`), which is the same function.
"""

from dataclasses import dataclass
from typing import Any, final

from ...base.errors import LayoutError
from .compose import composition
from .coordinates import idx2crd
from .core import ComposedLayout, Layout, LayoutLike
from .integers import AnyInt, AnyTuple, Coord, add, mul
from .inttuple import dice_tuple, leaves, zip_modes
from .modes import dice, slice_, slice_and_offset
from .scalars import RunTimeInt
from .swizzle import Swizzle


@final
@dataclass(frozen=True, slots=True)
class MixedBits:
    """An integer whose bits in `dynamic` are known at run time only (CuTe's MixedBits). Prints as its value."""

    static: int
    dynamic: int
    run_time: AnyTuple = 0
    """The part of the run-time integers: any dynamic integer, xored with `static`."""

    @property
    def value(self) -> Any:
        """The whole integer, a dynamic one if a bit of it is."""
        return self.run_time ^ self.static if self.dynamic else self.static

    def __str__(self) -> str:
        return str(self.value)


def slice_as_cute(coord: Coord, layout: LayoutLike) -> tuple[LayoutLike, AnyInt]:
    """The layout of the modes that `coord` keeps, and the index at which it starts.

    As `slice_and_offset`, but of a swizzled layout the part of the start that the swizzle does not touch is
    returned, and the result is a plain layout where CuTe C++ has one. Integers of `coord` may be dynamic; where
    shape or stride are not static, the swizzle is kept. Raises `LayoutError` if `coord` does not fit the shape.
    """
    if not isinstance(layout, ComposedLayout) or not isinstance(layout.inner, Swizzle):
        return slice_and_offset(coord, layout)
    if not all(type(leaf) is int for leaf in leaves((layout.outer.shape, layout.outer.stride))):
        return slice_and_offset(coord, layout)
    sliced = slice_(coord, layout.outer)
    if all(leaf is None for leaf in leaves(coord)):
        return ComposedLayout(layout.inner, layout.offset, _plain(sliced)), 0
    try:
        return _slice(layout.inner, _mixed(layout.offset), coord, layout.outer, _plain(sliced))
    except LayoutError:  # not made of powers of two, which C++ refuses
        return slice_and_offset(coord, layout)


def _plain(layout: LayoutLike) -> Layout:
    assert isinstance(layout, Layout)
    return layout


def _mixed(x: object) -> MixedBits:
    if isinstance(x, MixedBits):
        return x
    return MixedBits(x, 0) if type(x) is int else MixedBits(0, -1, x)


def _slice(
    swizzle: Swizzle, offset: MixedBits, coord: Coord, outer: Layout, sliced: Layout
) -> tuple[LayoutLike, AnyInt]:
    bits, base, gap = swizzle.bits, swizzle.base, abs(swizzle.shift) - swizzle.bits
    shape = (1 << base, 1 << bits, 1 << gap, 1 << bits, 1)  # of an index: below, low field, between, high field, above
    low, between, high = 1 << base, 1 << base + bits, 1 << base + bits + gap
    above = high << bits
    untouched, fields = Layout(shape, (1, 0, between, 0, above)), Layout(shape, (0, low, 0, high, 0))
    fixed, at = dice(coord, outer), dice_tuple(coord, coord)
    start = _xor(offset, _bits_at(composition(fields, fixed), at))
    rest = composition(untouched, fixed)(at)
    reached = composition(fields, sliced)(sliced.size - 1)
    if reached & ~swizzle(reached):
        left: AnyTuple = start if start.dynamic else start.static
        return ComposedLayout(swizzle, left, sliced), rest
    parts = _strides(swizzle, start)
    twos = (2,) * bits
    decayed = Layout((1 << base, twos, 1 << gap, twos, 1), (1, parts[0], between, parts[1], above))
    begin = swizzle(start.value)
    return composition(decayed, sliced), add(RunTimeInt(begin) if type(begin) is int else begin, rest)


def _strides(swizzle: Swizzle, start: MixedBits) -> tuple[tuple[AnyTuple, ...], tuple[AnyTuple, ...]]:
    """The steps of the swizzled index for a bit of the low, and of the high field, for a slice from `start` on.

    A bit that is only changed counts down where the bit that changes it is set; one that changes another takes that
    one along, down where it is set.
    """
    y, z = swizzle.y_mask & -swizzle.y_mask, swizzle.z_mask & -swizzle.z_mask
    changed = tuple([_chosen(start, y << i, z << i, -(z << i)) for i in range(swizzle.bits)])
    changing = tuple([_chosen(start, z << i, y + z << i, y - z << i) for i in range(swizzle.bits)])
    return (changed, changing) if z < y else (changing, changed)


def _chosen(start: MixedBits, bit: int, clear: int, set_: int) -> AnyTuple:
    """`clear` or `set_` by a bit of `start`; a run-time integer if the bit is one."""
    if not start.dynamic & bit:
        return set_ if start.static & bit else clear
    return clear + (start.value >> bit.bit_length() - 1 & 1) * (set_ - clear)


def _bits_at(layout: Layout, coord: object) -> MixedBits:
    """The index at a coordinate, bit by bit: those that a run-time coordinate can reach are run-time bits."""
    result = MixedBits(0, 0)
    parts = zip(leaves(layout.shape), leaves(layout.stride), leaves(_crd(coord, layout.shape)), strict=True)
    for extent, stride, at in parts:
        if type(at) is int:
            part = MixedBits(at * stride, 0)
        elif extent == 1 or stride == 0:
            continue
        else:
            part = MixedBits(0, (extent - 1) * stride, mul(at, stride))
        result = _xor(result, part)
    return result


def _crd(coord: AnyTuple, shape: AnyTuple) -> AnyTuple:
    """The coordinate with the profile of `shape`, integers in place of tuples taken apart."""
    if isinstance(coord, tuple) and isinstance(shape, tuple):
        return tuple([_crd(c, s) for c, s in zip_modes(coord, shape)])  # pyright: ignore[reportUnknownArgumentType]
    return idx2crd(coord, shape)  # pyright: ignore[reportUnknownArgumentType]


def _xor(a: MixedBits, b: MixedBits) -> MixedBits:
    run_time = b.run_time if not a.dynamic else a.run_time if not b.dynamic else a.run_time ^ b.run_time
    return MixedBits(a.static ^ b.static, a.dynamic | b.dynamic, run_time)
