# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The output of `tilefold show c-atom`: how make_tiled_copy_C_atom comes to its layout and tiler, step by step."""

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tilefold.base.errors import Code, LayoutError
from tilefold.layout.algebra.compose import composition
from tilefold.layout.algebra.core import Layout, make_layout, size
from tilefold.layout.drawing.drawings import Table, make_thread_value_table
from tilefold.layout.text.printing import Style, cxx_style, plain_style, print_layout_lines
from tilefold.layout.tiling.tiled_copy import tile_of
from tilefold.layout.tiling.tiled_mma import TiledMma
from tilefold.tools.show.option_text import OptionText
from tilefold.tools.show.tiled_mma import read_tiled_mma

_RULE = "=" * 60
_TRIED = 32  # numbers of values that a message looks among


@dataclass(frozen=True, slots=True)
class CAtomRequest:
    """A tiled MMA, and the numbers of values that copy atoms of its accumulator move."""

    mma: TiledMma
    counts: Sequence[int]
    style: Style

    def lines(self) -> list[str]:
        """The accumulator's layout and tile, and the steps for each number of values."""
        mma, style = self.mma, self.style
        lines = [f"layoutC_TV: {style(mma.layout_tv('C'))}", f"mma_tiler: {style(mma.tile_shape[:2])}"]
        for count in self.counts:
            lines += ["", _RULE, f"copy_V = {count}", _RULE, "", *_steps(mma, count, style)]
        return lines

    def tables(self) -> tuple[Table, ...]:
        """For each number of values, who has each place of the copy's tile. `LayoutError` if it is too large."""
        tables: list[Table] = []
        for count in self.counts:
            layout_tv, tiler = tile_of(self.mma.tile_shape[:2], _first_values(self.mma, count))
            shape = tuple([size(mode) for mode in tiler])
            tables.append(make_thread_value_table(f"copy_V = {count}", layout_tv, shape))
        return tuple(tables)


def read_c_atom(args: argparse.Namespace) -> CAtomRequest:
    """The request that the options make. TilefoldError for a wrong option, with the value at fault marked."""
    mma = read_tiled_mma(args)
    counts = OptionText("--copy-V", args.copy_V).read(lambda given: _values(given, mma))
    return CAtomRequest(mma, counts, plain_style if args.plain else cxx_style)


def _values(text: str, mma: TiledMma) -> Sequence[int]:
    """Numbers of values that an atom moves, from `1,2,4`."""
    most = mma.layout_tv("C")[1].size
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() and len(part) < 6 for part in parts):
        raise LayoutError(Code.CLI_VALUE, "not a list of numbers", "for example 1,2,4")
    for part in parts:
        if not 1 <= int(part) <= most:
            raise LayoutError(Code.TOO_FEW_VALUES, f"a thread has {most} values of the accumulator, not {part}")
        _check_prefix(mma, int(part), most)
    return [int(part) for part in parts]


def _check_prefix(mma: TiledMma, count: int, most: int) -> None:
    """LayoutError, naming numbers that would do, if the first `count` values of a thread form no layout."""
    if not _is_prefix(mma, count):
        counts = [str(n) for n in range(1, min(most, _TRIED) + 1) if _is_prefix(mma, n)]
        raise LayoutError(
            Code.SHAPE_DIVISIBILITY,
            f"the first {count} values of a thread form no layout: they do not fill modes of {mma.layout_tv('C')[1]}",
            f"numbers that do: {', '.join(counts)}",
        )


def _is_prefix(mma: TiledMma, count: int) -> bool:
    try:
        _ = tile_of(mma.tile_shape[:2], _first_values(mma, count))
    except LayoutError:
        return False
    return True


def _first_values(mma: TiledMma, count: int) -> Layout:
    """The map of the accumulator from (thread, one of the first `count` values) to a place in the MMA's tile."""
    whole = mma.layout_tv("C")
    layout_tv = composition(whole, make_layout((whole[0].size, count)))
    assert isinstance(layout_tv, Layout), "a plain layout of plain ones"
    return layout_tv


def _steps(mma: TiledMma, count: int, style: Style) -> Iterator[str]:
    """The first `count` values of each thread, the tiler that finds them, and their places in its tile."""
    shape, layout_tv = mma.tile_shape[:2], _first_values(mma, count)
    yield f"layout_TV = {style(layout_tv)}"
    yield "(thr, val) -> place in the MMA's tile"
    yield ""
    layout, tiler = tile_of(shape, layout_tv)
    yield f"tiler = ({', '.join(style(mode) for mode in tiler)})"
    yield "a layout for each mode of the tile"
    yield ""
    tile2mma = composition(make_layout(shape), tiler)
    yield f"tile2mma = {style(tile2mma)}"
    yield ""
    yield f"layout_tv = {style(layout)}"
    yield "(thr, val) -> place in the tile of the copy"
    yield ""
    assert isinstance(layout, Layout)
    yield from print_layout_lines(layout, style)
