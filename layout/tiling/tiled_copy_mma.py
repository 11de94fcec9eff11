# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tiled copies that bring the operands of a tiled MMA to its threads (CuTe's make_tiled_copy_A and so on)."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from ...base.errors import Code, LayoutError
from ..algebra.compose import composition
from ..algebra.core import make_layout
from ..atoms.copy_atom import CopyAtom
from .tiled_copy import TiledCopy, tile_of
from .tiled_mma import TiledMma


def make_tiled_copy_A(atom: CopyAtom, mma: TiledMma) -> TiledCopy:
    """The tiled copy of operand A. Raises `LayoutError` if `TiledCopy` does."""
    return TiledCopy(atom, mma.layout_tv("A"), (mma.tile_size(0), mma.tile_size(2)))


def make_tiled_copy_B(atom: CopyAtom, mma: TiledMma) -> TiledCopy:
    """The tiled copy of operand B. Raises `LayoutError` if `TiledCopy` does."""
    return TiledCopy(atom, mma.layout_tv("B"), (mma.tile_size(1), mma.tile_size(2)))


def make_tiled_copy_C(atom: CopyAtom, mma: TiledMma) -> TiledCopy:
    """The tiled copy of the accumulator. Raises `LayoutError` if `TiledCopy` does."""
    return TiledCopy(atom, mma.layout_tv("C"), (mma.tile_size(0), mma.tile_size(1)))


def make_tiled_copy_C_atom(atom: CopyAtom, mma: TiledMma) -> TiledCopy:
    """The smallest tiled copy of the accumulator: as many values of each thread as one `atom` moves.

    Raises `LayoutError` (E0306) if a thread has fewer values than the atom moves.
    """
    layout = mma.layout_tv("C")
    values = atom.src[1].size
    if values > layout[1].size:
        raise LayoutError(
            Code.TOO_FEW_VALUES, f"a thread has {layout[1].size} values of the accumulator; {atom} moves {values}"
        )
    first_values = composition(layout, make_layout((layout[0].size, values)))
    return TiledCopy(atom, *tile_of((mma.tile_size(0), mma.tile_size(1)), first_values))


BY_MMA: Mapping[str, Callable[[CopyAtom, TiledMma], TiledCopy]] = MappingProxyType({
    "A": make_tiled_copy_A, "B": make_tiled_copy_B, "C": make_tiled_copy_C, "C_atom": make_tiled_copy_C_atom,
})  # fmt: skip
"""How to make a tiled copy for an operand of a tiled MMA, by the end of CuTe's name for it."""
