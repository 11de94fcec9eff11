# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The loops in which a copy repeats its atom: extents, and the modes of its operands that they walk."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from ..algebra.core import ComposedLayout, Layout, LayoutLike, cosize, flat_modes, size
from ..algebra.integers import Unknown, add

Stride: TypeAlias = int | Unknown
_Loop: TypeAlias = tuple[int, tuple[Stride, ...]]


@dataclass(frozen=True, slots=True)
class Repeat:
    """A loop of `extent` iterations: iteration i is at `modes[j](i)` of operand j, in elements."""

    extent: int
    modes: tuple[Layout, ...]


def with_outer(like: LayoutLike, outer: Layout, distance: object = 0) -> LayoutLike:
    """`outer` with the swizzle of `like`, its offset moved by `distance`; `outer` itself if `like` has none."""
    if isinstance(like, ComposedLayout):
        return ComposedLayout(like.inner, add(like.offset, distance), outer)
    return outer


def is_constant(layout: Layout) -> bool:
    """Whether all coordinates map to 0."""
    return cosize(layout) == 1


def repeats(*operands: list[Layout]) -> list[Repeat]:
    """The loops over the modes of operands, which are of equal sizes, the first mode innermost, merged where one loop
    serves for two.

    Modes of equal size but different profile are walked in colexicographic order: by their common refinement, or where
    there is none by one loop over all.
    """
    loops: list[_Loop | Repeat] = []
    for modes in zip(*operands, strict=True):
        refined = _refine(modes)
        if refined is None:
            loops.append(Repeat(size(modes[0]), modes))
            continue
        for extent, strides in refined:
            last = loops[-1] if loops else None
            if isinstance(last, tuple) and _continues(last, strides):
                loops[-1] = (last[0] * extent, last[1])
            else:
                loops.append((extent, strides))
    return [r if isinstance(r, Repeat) else Repeat(r[0], tuple([Layout(r[0], d) for d in r[1]])) for r in loops]


def _continues(loop: _Loop, strides: tuple[Stride, ...]) -> bool:
    """Whether a loop goes on with these strides where it ends, which of run-time strides is not known."""
    extent, own = loop
    return all(isinstance(now, int) and before * extent == now for before, now in zip(own, strides, strict=True))


def _refine(layouts: Sequence[Layout]) -> list[_Loop] | None:
    """Loops (extent, stride of each layout) that walk layouts of one size; None if there are none."""
    assert len({size(layout) for layout in layouts}) == 1, "the verifier checks this"
    left = [_modes(layout) for layout in layouts]
    loops: list[_Loop] = []
    while all(left):
        heads = [modes.pop() for modes in left]
        step = min(n for n, _ in heads)
        if any(n % step for n, _ in heads):
            return None
        loops.append((step, tuple([d for _, d in heads])))
        for modes, (n, d) in zip(left, heads, strict=True):
            if n > step:
                modes.append((n // step, d * step))
    return loops


def _modes(layout: Layout) -> list[tuple[int, Stride]]:
    """The extents above 1 with their strides, the last mode first."""
    return [(n, d) for n, d in flat_modes(layout) if n != 1][::-1]
