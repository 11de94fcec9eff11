# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The tiled copy that the options of `tilefold show tiled-copy` describe."""

import argparse
from collections.abc import Callable
from typing import Any

from tilefold.base.errors import Code, LayoutError, TilefoldError
from tilefold.layout.algebra.core import Layout
from tilefold.layout.algebra.inttuple import leaves
from tilefold.layout.algebra.inverse import right_inverse
from tilefold.layout.text.layouts import parse_tiler
from tilefold.layout.tiling.tiled_copy import (
    TiledCopy,
    make_cotiled_copy,
    make_tiled_copy,
    make_tiled_copy_tv,
    tile_shape,
)
from tilefold.layout.tiling.tiled_copy_mma import BY_MMA
from tilefold.tools.show.atom_names import atom_of
from tilefold.tools.show.layouts import unswizzled_layout
from tilefold.tools.show.mma import read_tiled_mma
from tilefold.tools.show.option_text import OptionText


def read_tiled_copy(args: argparse.Namespace, atom: OptionText, bits: int) -> tuple[TiledCopy, dict[str, Layout]]:
    """The tiled copy, and the layouts of which it was made, by their roles."""
    copy_atom = atom.read(lambda text: atom_of(text, bits))
    ways = ("thr", "val", "tv", "tiler", "cotiled", "data", "mma")
    match [name for name in ways if getattr(args, name) is not None]:
        case ["thr"] | ["thr", "val"]:
            thr, val = args.thr, args.val
            by_thread, by_value = OptionText("--thr", thr), OptionText("--val", "1:0" if val is None else val)
            threads = by_thread.read(unswizzled_layout)
            values = by_value.read(unswizzled_layout)
            numbers = by_value if right_inverse(threads).size == threads.size else by_thread
            copy = _make(lambda: make_tiled_copy(copy_atom, threads, values), atom, by_thread, by_value, numbers)
            return copy, {"thread": threads, "vector": values}
        case ["tv", "tiler"]:
            text = OptionText("--tv", args.tv)
            layout_tv, tile = text.read(_layout_tv), OptionText("--tiler", args.tiler).read(_static_tiler)
            return _make(lambda: make_tiled_copy_tv(copy_atom, layout_tv, tile), atom, text, text), {}
        case ["cotiled", "data"]:
            text = OptionText("--cotiled", args.cotiled)
            atom_tv, data = text.read(_layout_tv), OptionText("--data", args.data).read(unswizzled_layout)
            return _make(lambda: make_cotiled_copy(copy_atom, atom_tv, data), atom, text, text), {}
        case ["mma"]:
            mma, make = read_tiled_mma(args, "--mma"), BY_MMA[args.operand]
            return _make(lambda: make(copy_atom, mma), atom, atom, atom), {}
        case _:
            raise TilefoldError(
                Code.CLI_VALUE,
                "a tiled copy is made of a thread and a value layout, of a thread-value layout and a tiler, or of an "
                "operand of a tiled MMA",
                "give --thr and --val, --tv and --tiler, --cotiled and --data, or --mma and --operand",
            )


def _layout_tv(text: str) -> Layout:
    layout = unswizzled_layout(text)
    if len(layout) != 2:
        raise LayoutError(Code.RANK_MISMATCH, f"a thread-value layout has two modes, not {len(layout)}")
    return layout


def _static_tiler(text: str) -> Any:
    tiler = parse_tiler(text)
    if not all(type(leaf) is int for leaf in leaves(tile_shape(tiler))):
        raise LayoutError(Code.DYNAMIC_UNSUPPORTED, "the tiler of a tiled copy must be static, of integers")
    return tiler


def _make(
    make: Callable[[], TiledCopy],
    atom: OptionText,
    threads: OptionText,
    values: OptionText,
    numbers: OptionText | None = None,
) -> TiledCopy:
    """The tiled copy, or its mistake at the value that it comes from."""
    try:
        return make()
    except LayoutError as error:
        places = {Code.ATOM_VALUE_WIDTH: atom, Code.TOO_FEW_VALUES: values, Code.NOT_A_NUMBERING: numbers or threads}
        blamed = places.get(error.code, threads)
        raise blamed.error(error) from error
