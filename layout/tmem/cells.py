# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Places in tensor memory as layouts count them: in elements, several to a cell (PTX ISA, Tensor Memory
Addressing; CuTe's pointer.hpp, tmem_ptr).

A column is 32 bits, and a lane 65536 columns; in elements of 16 bits that is 2 and 131072.
"""

from ...base.spaces import LANE_SHIFT, TMEM, Cells
from ..algebra.core import Layout, LayoutLike, cosize
from ..algebra.integers import AnyInt
from ..algebra.recast import recast_layout

_FORM = TMEM.form
assert isinstance(_FORM, Cells)
LANES, COLUMNS, CELL = _FORM.lanes, _FORM.columns, _FORM.unit_bits
QUARTER = _FORM.warp_lanes
"""The lanes that a warp reaches."""
CAPACITY = LANES * COLUMNS * CELL
"""The bits of the tensor memory of a multiprocessor."""
_COLUMN_MASK = (1 << LANE_SHIFT) - 1
_WORD = (1 << 32) - 1


def lane_stride(bits: int) -> int:
    """The distance of neighbouring lanes in elements of `bits` bits."""
    return (CELL << LANE_SHIFT) // bits


def add_elements(address: AnyInt, index: AnyInt, bits: int) -> AnyInt:
    """The address `index` elements of `bits` bits after another, integers or arrays of them. The place of an element
    within its cell is in the upper bits, as CuTe's pointers have it: it becomes the number of a scale factor.
    """
    shift, address = (CELL // bits).bit_length() - 1, address & _WORD
    elements = (address << shift | address >> (32 - shift)) & _WORD
    moved = (elements + index) & _WORD
    return (moved >> shift | moved << (32 - shift)) & _WORD


WITHIN_CELL = 30
"""The first bit of an address that holds the place of a byte within its cell."""


def count_columns(layout: LayoutLike, bits: int) -> int:
    """How many columns a tensor reaches, from that of its address on (CuTe's find_tmem_tensor_col_offset)."""
    plain = layout if isinstance(layout, Layout) else layout.outer
    return cosize(recast_layout(plain, bits, CELL)) & _COLUMN_MASK
