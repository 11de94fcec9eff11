# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Atoms, tiled copies, tiled MMAs and tensors as CuTe's `print` writes them.

CuTe's copy_atom.hpp, mma_atom.hpp, pointer.hpp and tensor_impl.hpp. Each function takes the style in which layouts and
integers are written: `cxx_style` (`(_8,_4):(_1,_8)`, as C++ does) or `plain_style` (the canonical `(8,4):(1,8)`).
"""

from collections.abc import Callable
from typing import Any

from ..algebra.core import Layout, cosize
from ..atoms.copy_atom import CopyAtom
from ..atoms.mma_atom import MmaAtom
from ..tiling.tiled_copy import TiledCopy
from ..tiling.tiled_mma import TiledMma
from .layouts import to_cxx, to_text

Style = Callable[[Any], str]

plain_style: Style = to_text


def cxx_style(x: object) -> str:
    """The text of a layout, tiler or tuple as C++ prints it: a tiler of layouts is a tuple like any other."""
    return to_cxx(x).replace("[", "(").replace(";", ",").replace("]", ")")


def tensor_text(pointer: str, bits: int, address: str, layout: str) -> str:
    """A tensor of `bits`-bit elements: `gmem_ptr[16b](0x7f...) o (128,32):(1,1024)`."""
    return f"{pointer}[{bits}b]({address}) o {layout}"


def atom_lines(atom: CopyAtom, style: Style) -> list[str]:
    """The lines of a Copy_Atom, in values of the atom's width."""
    return [
        "Copy_Atom",
        f"  ThrID:        {style(atom.thr_id)}",
        f"  ValLayoutSrc: {style(atom.src)}",
        f"  ValLayoutDst: {style(atom.dst)}",
        f"  ValLayoutRef: {style(atom.ref)}",
        f"  ValueType:    {atom.val_bits}b",
    ]


def tiled_copy_lines(copy: TiledCopy, style: Style) -> list[str]:
    """The lines of a TiledCopy: its tiler, its thread-value layout and its atom."""
    return [
        "TiledCopy",
        f"  Tiler_MN:       {style(copy.tiler)}",
        f"  TiledLayout_TV: {style(copy.layout_tv)}",
        *atom_lines(copy.atom, style),
    ]


def thr_copy_lines(copy: TiledCopy, thread: object, style: Style) -> list[str]:
    """The lines of a ThrCopy: the thread's index, a run-time integer, and the tiled copy."""
    return ["ThrCopy", f"  ThrIdx: {plain_style(thread)}", *tiled_copy_lines(copy, style)]


def thr_mma_lines(mma: TiledMma, thread: object, style: Style) -> list[str]:
    """The lines of a ThrMMA: the thread's place among the atoms (V,M,N,K), and the tiled MMA."""
    return ["ThrMMA", f"  Thr VMNK: {style(mma.thread_coord(thread))}", *tiled_mma_lines(mma, style)]


def mma_atom_lines(atom: MmaAtom, style: Style) -> list[str]:
    """The lines of an MMA_Atom."""
    return [
        "MMA_Atom",
        f"  ThrID:      {style(atom.thr_id)}",
        f"  Shape_MNK:  {style(atom.shape)}",
        f"  LayoutA_TV: {style(atom.layout_a)}",
        f"  LayoutB_TV: {style(atom.layout_b)}",
        f"  LayoutC_TV: {style(atom.layout_c)}",
    ]


def tiled_mma_lines(mma: TiledMma, style: Style) -> list[str]:
    """The lines of a TiledMMA: its threads, its permutation and its atom."""
    return [
        "TiledMMA",
        f"  ThrLayoutVMNK:  {style(mma.thr_layout_vmnk)}",
        f"  PermutationMNK: {style(mma.permutation)}",
        *mma_atom_lines(mma.atom, style),
    ]


def print_layout_lines(layout: Layout, style: Style) -> list[str]:
    """The lines of print_layout: the layout, and the index of each coordinate (m,n) of its two static modes."""
    rows, columns = layout[0].size, layout[1].size
    width = len(str(cosize(layout)))
    rule = "    " + ("+" + "-" * (width + 2)) * columns + "+"
    result = [style(layout), "    " + "".join(f"  {n:>{width}} " for n in range(columns)), rule]
    for m in range(rows):
        cells = "".join(f"| {layout(m, n):>{width}} " for n in range(columns))
        result += [f"{m:>2}  {cells}|", rule]
    return result


def lines(x: object, style: Style) -> list[str]:
    """The lines of anything that CuTe prints: an atom, a tiled copy or MMA, a truth value, or else one of `style`."""
    match x:
        case CopyAtom():
            return atom_lines(x, style)
        case MmaAtom():
            return mma_atom_lines(x, style)
        case TiledCopy():
            return tiled_copy_lines(x, style)
        case TiledMma():
            return tiled_mma_lines(x, style)
        case bool():
            return ["true" if x else "false"]
        case _:
            return [style(x)]
