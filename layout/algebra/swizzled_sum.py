# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Swizzled indices as sums of parts, and which parts the swizzle leaves alone.

A swizzle is applied to the sum of a tensor's offset and an element's index. A part of that sum whose bits are neither
read nor changed by the swizzle, and which no carry reaches, can be added afterwards; so can whole periods. A loop
mostly adds such parts, so that only the part that depends on the thread is swizzled, once.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, cast

from .core import Layout, flat_modes, join
from .integers import AnyTuple
from .inttuple import leaves, transform_leaves
from .swizzle import Swizzle

Value = TypeVar("Value")
ANY_BITS = (1 << 63) - 1
"""The bits of an unknown value."""


@dataclass(frozen=True, slots=True)
class Addend(Generic[Value]):
    """A summand of an index: a value in elements, never negative, and the bits that can be set in it."""

    value: Value
    bits: int


def split(parts: Sequence[Addend[Value]], swizzle: Swizzle) -> tuple[list[Addend[Value]], list[Addend[Value]]]:
    """The parts to which the swizzle is applied, and those that are added afterwards; their sum is the same."""
    touched = swizzle.y_mask | swizzle.z_mask
    inside, outside = list(parts), list[Addend[Value]]()
    for part in parts:
        others = [other for other in inside if other is not part]
        apart = part.bits & (touched | sum_bits([other.bits for other in others])) == 0
        if apart or part.bits & (_period(swizzle) - 1) == 0:
            inside, outside = others, [*outside, part]
    return inside, outside


def by_period(mode: Layout, swizzle: Swizzle) -> list[Layout]:
    """`mode` as a sum: strides that are whole periods of the swizzle, and the others, each with zeros for the rest."""
    period = _period(swizzle)
    within = transform_leaves(lambda d: d if d % period else 0, mode.stride)
    beyond = transform_leaves(lambda d: 0 if d % period else d, mode.stride)
    if not any(leaves(within)) or not any(leaves(beyond)):
        return [mode]
    return [Layout(mode.shape, within), Layout(mode.shape, beyond)]


def cut_at_period(mode: Layout, swizzle: Swizzle) -> Layout:
    """`mode` with each leaf that runs through several periods as two: within one, and from one to the next."""
    return _cut(mode.shape, mode.stride, _period(swizzle))


def _cut(shape: AnyTuple, stride: AnyTuple, period: int) -> Layout:
    if isinstance(shape, tuple):
        modes = zip(cast("tuple[Any, ...]", shape), stride, strict=True)
        return join([_cut(s, d, period) for s, d in modes])
    inside = period // stride if 0 < stride < period and period % stride == 0 else shape
    if inside < shape and shape % inside == 0:
        return Layout((inside, shape // inside), (stride, period))
    return Layout(shape, stride)


def _period(swizzle: Swizzle) -> int:
    return 1 << (swizzle.y_mask | swizzle.z_mask).bit_length()


def index_bits(mode: Layout) -> int:
    """The bits that can be set in an index of `mode`, at a coordinate within its shape."""
    return sum_bits([_leaf_bits(n, d) for n, d in flat_modes(mode)])


def _leaf_bits(extent: int, stride: int) -> int:
    last = (extent - 1) * stride
    if last == 0:
        return 0
    if extent & (extent - 1) == 0 and stride & (stride - 1) == 0:
        return last
    return _between(stride & -stride, last)


def _between(lowest: int, largest: int) -> int:
    """All bits from that of `lowest` up to the highest of `largest`."""
    return ((1 << largest.bit_length()) - 1) & ~(lowest - 1)


def sum_bits(masks: Sequence[int]) -> int:
    """The bits that can be set in a sum of values with these bits: theirs, and where they overlap, all that carries
    reach.
    """
    together = 0
    for bits in masks:
        if together & bits:
            total = sum(masks)
            return _between(min(b & -b for b in masks if b), total) if total < ANY_BITS else ANY_BITS
        together |= bits
    return together
