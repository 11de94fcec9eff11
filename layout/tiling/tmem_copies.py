# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tiled copies that reach tensor memory (CuTe's make_tmem_copy, make_utccp_copy and get_utccp_smem_desc_tensor)."""

from ...base.errors import Code, LayoutError
from ..algebra.coalesce import coalesce
from ..algebra.compose import composition, with_shape
from ..algebra.core import Layout, join
from ..algebra.inverse import left_inverse
from ..algebra.modes import flatten_layout
from ..algebra.recast import recast_layout, upcast
from ..atoms.copy_atom import CopyAtom
from ..atoms.tmem_copy import cells_of
from ..atoms.umma_descriptors import UNIT, SmemDescriptor, Swizzling
from ..tmem.cells import LANES, QUARTER, lane_stride
from .tiled_copy import TiledCopy, make_cotiled_copy

_UNIT = Layout(1, 0)
WARPS = LANES // QUARTER
"""The warps that together reach all lanes."""


def make_tmem_copy(atom: CopyAtom, tensor: Layout) -> TiledCopy:
    """The copy of four warps between registers and a tensor in tensor memory, whose layout counts values as the atom
    has them. Each warp reaches its quarter of the lanes.

    Raises `LayoutError` (E0304) for an atom that does not reach tensor memory, (E0308) where a warp would reach cells
    that the tensor does not have.
    """
    step = QUARTER * lane_stride(atom.val_bits)
    reached = composition(join((tensor, _UNIT)), composition(join((left_inverse(tensor), _UNIT)), Layout(WARPS, step)))
    if coalesce(reached) != Layout(WARPS, step):
        raise LayoutError(
            Code.NOT_IN_DATA_LAYOUT,
            f"{tensor} does not have cells in the lanes of each of {WARPS} warps",
            "copy a tensor that has lanes in all quarters of tensor memory",
        )
    hint = "use a shape whose cells the tensor has: of 16 lanes for 64 rows, repeated less often for few columns"
    return make_cotiled_copy(atom, join((Layout((32, WARPS), (0, step)), _values(atom))), tensor, hint)


def make_utccp_copy(atom: CopyAtom, tensor: Layout) -> TiledCopy:
    """The copies of a thread from shared memory to a tensor in tensor memory; see `make_tmem_copy`."""
    return make_cotiled_copy(atom, join((Layout(atom.threads, 0), _values(atom))), tensor)


def _values(atom: CopyAtom) -> Layout:
    """The values of an atom to elements of tensor memory, from that of the address on."""
    cells = cells_of(atom)
    try:
        return coalesce(upcast(cells, atom.val_bits))
    except LayoutError as error:
        raise LayoutError(
            Code.ATOM_VALUE_WIDTH, f"{atom.name} cannot move values of {atom.val_bits} bits", error.hint
        ) from error


def values_descriptor(atom: CopyAtom, values: Layout, address: int = 0) -> SmemDescriptor:
    """The descriptor of the values of one execution of tcgen05.cp, whose rows are cut into core matrices of 8 rows by
    16 bytes. Raises `LayoutError` (E0315) for a matrix that has other ones.
    """
    rows, width = upcast(cells_of(atom), atom.val_bits).shape[:2]
    matrix: Layout = recast_layout(with_shape(flatten_layout(values), (rows, width)), atom.val_bits, 8 * UNIT)
    starts = [matrix((row, 0)) for row in range(rows)]
    next_core = starts[8]
    if any(start != row % 8 + row // 8 * next_core for row, start in enumerate(starts)):
        raise LayoutError(
            Code.NOT_A_WGMMA_OPERAND,
            f"no descriptor of tcgen05.cp describes {values}",
            "its rows of 16 bytes follow each other in groups of 8",
        )
    across = matrix((0, 1)) if matrix[1].size > 1 else 1
    return SmemDescriptor(address >> 4, across, next_core, Swizzling.NONE.value)
