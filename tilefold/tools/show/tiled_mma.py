# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The output of `tilefold show tiled-mma`: a tiled MMA and the parts of its threads, in the lines of CuTe's print."""

import argparse
from dataclasses import dataclass
from typing import Any, cast

from tilefold.base.errors import Code, LayoutError, TilefoldError
from tilefold.layout.algebra.core import LayoutLike, cosize
from tilefold.layout.algebra.scalars import RunTimeInt, value_of
from tilefold.layout.algebra.swizzled_slice import slice_as_cute
from tilefold.layout.atoms.mma_table import mma_atom
from tilefold.layout.text.layouts import parse_tiler
from tilefold.layout.text.printing import Style, cxx_style, plain_style, tiled_mma_lines
from tilefold.layout.tiling.partition import check_tiler
from tilefold.layout.tiling.tiled_mma import TiledMma, make_tiled_mma
from tilefold.tools.show.option_text import OptionText, has_unknowns, tensor_layout, unswizzled_layout
from tilefold.tools.show.ragged import check_covered, ragged_lines, within

OPERANDS = ("A", "B", "C")


@dataclass(frozen=True, slots=True)
class MmaRequest:
    """A tiled MMA, a thread, and the layouts of the tensors that it is to multiply, by operand."""

    mma: TiledMma
    thread: int
    tensors: dict[str, LayoutLike]
    style: Style

    def lines(self) -> list[str]:
        """The tiled MMA, its tile, (thread,value) of each operand, the thread's place, and its parts and fragments."""
        mma, style = self.mma, self.style
        lines = [*tiled_mma_lines(mma, style), f"Tile_MNK: {style(mma.tile_shape)}"]
        lines += [f"Layout{operand}_TV: {style(mma.layout_tv(operand))}" for operand in OPERANDS]
        lines += ["ThrMMA", f"  Thr VMNK: {style(mma.thread_coord(RunTimeInt(self.thread)))}"]
        for operand, layout in self.tensors.items():
            thread = self.thread if has_unknowns(layout) else RunTimeInt(self.thread)
            part, start = mma.partition(operand, layout, thread, slice_as_cute)
            lines += [
                f"partition_{operand}: {style(part)} from element {value_of(start)}",
                f"fragment_{operand}: {style(mma.make_fragment(operand, part))}",
            ]
        for operand, layout in self.tensors.items():
            lines += self._ragged_lines(operand, layout)
        return lines

    def _ragged_lines(self, operand: str, layout: LayoutLike) -> list[str]:
        """Which tiles of an operand reach beyond its tensor, and how much of the thread's part is within it."""
        lines = [*ragged_lines(operand, layout, self.mma.tiler(operand))]
        if lines:
            counted = within(layout, lambda tensor: self.mma.partition(operand, tensor, self.thread))
            if counted is not None:
                lines.append(f"partition_{operand}: {counted[0]} of {counted[1]} elements are within {operand}")
        return lines


def read_tiled_mma(args: argparse.Namespace, option: str = "--atom") -> TiledMma:
    """The tiled MMA of an atom, given by `option`, and the options --atoms and --permute.

    TilefoldError for a wrong option, with the value at fault marked.
    """
    named = OptionText(option, getattr(args, option.removeprefix("--")))
    atom = named.read(lambda text: mma_atom("".join(text.split()).replace("cute::", "")))
    layout = None if args.atoms is None else OptionText("--atoms", args.atoms).read(unswizzled_layout)
    permute = None if args.permute is None else OptionText("--permute", args.permute)
    tile = () if permute is None else permute.read(_permutation)
    with (named if args.atoms is None else OptionText("--atoms", args.atoms)).blamed():
        mma = make_tiled_mma(atom, layout, tile)
    blamed = permute or named
    with blamed.blamed():
        for operand in OPERANDS:
            _ = mma.layout_tv(operand)
    return mma


def read_mma(args: argparse.Namespace) -> MmaRequest:
    """The request that the options make. TilefoldError for a wrong option, with the value at fault marked."""
    mma = read_tiled_mma(args)
    tensors: dict[str, LayoutLike] = {}
    for operand in OPERANDS:
        if (text := getattr(args, operand)) is not None:
            option = OptionText(f"--{operand}", text)
            tensors[operand] = option.read(tensor_layout)
            with option.blamed():
                _ = mma.partition(operand, tensors[operand], 0)
                if not args.ragged:
                    check_covered(tensors[operand], mma.tiler(operand))
    thread = OptionText("--thread", args.thread).read(lambda text: _thread(text, mma))
    return MmaRequest(mma, thread, tensors, plain_style if args.plain else cxx_style)


def _permutation(text: str) -> tuple[Any, ...]:
    """A tile size, a layout or `_` for M, N and K; later ones may be missing."""
    tile = parse_tiler(text)
    check_tiler(tile, "the permutation of a tiled MMA")
    entries = cast("tuple[Any, ...]", tile) if isinstance(tile, tuple) else (tile,)
    if len(entries) > 3:
        raise LayoutError(Code.RANK_MISMATCH, f"a permutation has entries for M, N and K, not {len(entries)}")
    return entries


def _thread(text: str, mma: TiledMma) -> int:
    last = cosize(mma.thr_layout_vmnk) - 1
    if not text.isdecimal() or len(text) > 9 or int(text) > last:
        raise TilefoldError(
            Code.CLI_VALUE, f"{text[:40]!r} is not one of the threads", f"the tiled MMA has threads 0 to {last}"
        )
    return int(text)
