# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Atoms, tiled copies and tensors as CuTe's `print` writes them.

CuTe's copy_atom.hpp, pointer.hpp and tensor_impl.hpp. Each function takes the style in which layouts and
integers are written: `cxx_style` (`(_8,_4):(_1,_8)`, as C++ does) or `plain_style` (the canonical `(8,4):(1,8)`).
"""

from collections.abc import Callable
from typing import Any

from .atoms.copy_atom import CopyAtom
from .text import to_cxx, to_text
from .tiled_copy import TiledCopy

Style = Callable[[Any], str]

POINTERS = {"gmem": "gmem_ptr", "smem": "smem_ptr", "rmem": "ptr"}
"""What CuTe calls a pointer to each memory space. Registers, and memory without a tag, are plain `ptr`."""


plain_style: Style = to_text


def cxx_style(x: Any) -> str:
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


def thr_copy_lines(copy: TiledCopy, thread: int, style: Style) -> list[str]:
    """The lines of a ThrCopy: the thread's index, a run-time integer, and the tiled copy."""
    return ["ThrCopy", f"  ThrIdx: {thread}", *tiled_copy_lines(copy, style)]
