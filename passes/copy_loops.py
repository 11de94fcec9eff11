# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The loops in which a copy repeats its atom: extents, and the modes of source and destination that they walk."""

from dataclasses import dataclass
from typing import Any

from ..layout.core import ComposedLayout, Layout, LayoutLike, size
from ..layout.integers import add
from ..layout.inttuple import leaves


@dataclass(frozen=True, slots=True)
class Repeat:
    """A loop of `extent` iterations: iteration i is at `src(i)` and `dst(i)`, in elements."""

    extent: int
    src: Layout
    dst: Layout


def plain(layout: LayoutLike) -> Layout:
    """The layout without its swizzle."""
    inner = layout.inner if isinstance(layout, ComposedLayout) else layout
    assert isinstance(inner, Layout)
    return inner


def with_inner(like: LayoutLike, inner: Layout, distance: Any = 0) -> LayoutLike:
    """`inner` with the swizzle of `like`, its offset moved by `distance`; `inner` itself if `like` has none."""
    if isinstance(like, ComposedLayout):
        return ComposedLayout(like.outer, add(like.offset, distance), inner)
    return inner


def repeats(src: list[Layout], dst: list[Layout]) -> list[Repeat]:
    """The loops over pairs of modes of equal size, the first mode innermost, merged where one loop serves for two.

    Modes of equal size but different profile are walked in colexicographic order: by their common refinement, or where
    there is none by one loop over both.
    """
    loops: list[tuple[int, int, int] | Repeat] = []
    for s, d in zip(src, dst, strict=True):
        refined = _refine(s, d)
        if refined is None:
            loops.append(Repeat(size(s), s, d))
            continue
        for extent, ours, theirs in refined:
            last = loops[-1] if loops else None
            if isinstance(last, tuple) and (ours, theirs) == (last[1] * last[0], last[2] * last[0]):
                loops[-1] = (last[0] * extent, last[1], last[2])
            else:
                loops.append((extent, ours, theirs))
    return [r if isinstance(r, Repeat) else Repeat(r[0], Layout(r[0], r[1]), Layout(r[0], r[2])) for r in loops]


def _refine(src: Layout, dst: Layout) -> list[tuple[int, int, int]] | None:
    """Loops (extent, source stride, destination stride) that walk two layouts of one size; None if there are none."""
    assert size(src) == size(dst), "the verifier checks this"
    ours, theirs = _modes(src), _modes(dst)
    loops: list[tuple[int, int, int]] = []
    while ours and theirs:
        (n, d), (m, e) = ours.pop(), theirs.pop()
        step = min(n, m)
        if n % step or m % step:
            return None
        loops.append((step, d, e))
        if n > step:
            ours.append((n // step, d * step))
        if m > step:
            theirs.append((m // step, e * step))
    return loops


def _modes(layout: Layout) -> list[tuple[int, int]]:
    """The extents above 1 with their strides, the last mode first."""
    pairs = zip(leaves(layout.shape), leaves(layout.stride), strict=True)
    return [(n, d) for n, d in pairs if n != 1][::-1]
