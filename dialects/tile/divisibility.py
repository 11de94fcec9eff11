# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks that tiles cover a tensor exactly. CuTe rounds the number of tiles up, which leaves the last ones beyond the
tensor's end.
"""

from dataclasses import dataclass

from ...base.errors import Code, LayoutError
from ...layout.algebra.core import Layout, LayoutLike, Tiler, flat_modes, size
from ...layout.algebra.divide import logical_divide
from ...layout.algebra.integers import Unknown
from ...layout.algebra.inttuple import show


@dataclass(frozen=True, slots=True)
class Remedies:
    """The hints of `check_tiles`: where to promise a divisor, and how to avoid the need for one."""

    promise: str = " in the type or by cute.dynamic(array, divisibility=...)"
    ragged: str = "add `ragged` and copy under predicates"


def check_tiles(layout: LayoutLike, tiler: Tiler, remedies: Remedies = Remedies()) -> None:
    """Raises `LayoutError` (E0314), naming the mode, unless the tiles of `tiler` cover `layout` exactly."""
    if not isinstance(tiler, tuple):
        _check_mode(layout, tiler, "the tensor", remedies)
        return
    for index, (mode, part) in enumerate(zip(_modes(layout), tiler, strict=False)):
        _check_mode(mode, part, f"mode {index} of the tensor", remedies)


def _modes(layout: LayoutLike) -> list[LayoutLike]:
    return [layout[i] for i in range(len(layout))]


def _check_mode(layout: LayoutLike, tiler: Tiler, subject: str, remedies: Remedies) -> None:
    if tiler is None:
        return
    if isinstance(tiler, tuple):
        for index, (mode, part) in enumerate(zip(_modes(layout), tiler, strict=False)):
            _check_mode(mode, part, f"{subject}, part {index},", remedies)
        return
    whole = size(layout)
    tile = tiler.size if isinstance(tiler, Layout) else tiler
    if not isinstance(tile, int):
        return
    if isinstance(whole, Unknown):
        if whole.div % _period(tiler):
            raise LayoutError(
                Code.TILE_NOT_DIVIDING,
                f"{subject} has {whole} elements, which tiles of {_text(tiler)} are not known to divide",
                f"promise it, by ?{{div={_period(tiler)}}}{remedies.promise}, or {remedies.ragged}",
            )
        return
    if not isinstance(whole, int) or logical_divide(layout, tiler).size == whole:
        return
    fitting = max(n for n in range(1, min(tile, whole) + 1) if whole % n == 0) if whole <= 1 << 20 else None
    hint = f"use tiles of {fitting}, or " if fitting is not None and fitting > 1 else ""
    raise LayoutError(
        Code.TILE_NOT_DIVIDING,
        f"{subject} has {whole} elements, which tiles of {_text(tiler)} do not divide",
        f"{hint}pad the tensor to {-(-whole // tile) * tile} elements, or {remedies.ragged}",
    )


def _text(tiler: Tiler) -> str:
    return show(tiler) if isinstance(tiler, int) else str(tiler)


def _period(tiler: Tiler) -> int:
    """After how many elements the next tile begins beside those that are interleaved."""
    if not isinstance(tiler, Layout):
        assert isinstance(tiler, int), "the caller checks this"
        return tiler
    return max(s * d for s, d in flat_modes(tiler))
