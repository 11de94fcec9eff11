# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How wgmma finds its operands in shared memory: swizzled layouts, and the descriptors that name them.

PTX ISA, Asynchronous warpgroup-level matrix instructions: shared memory matrix layout, matrix descriptor
format.
"""

from dataclasses import dataclass
from typing import Any, final

from ...base.errors import Code, LayoutError
from ..algebra.core import Layout
from ..algebra.divide import logical_divide
from ..algebra.inttuple import congruent, flatten_to_tuple
from ..algebra.modes import compose_parts
from ..algebra.recast import recast_layout
from ..algebra.swizzle import Swizzle

SWIZZLE_BITS = {"INTER": 0, "SW32": 1, "SW64": 2, "SW128": 3}
"""The bits that each swizzling mode xors, by CuTe's names; the swizzle acts on byte addresses, as
S<bits,4,3>.
"""

_LAYOUT_TYPE = {0: 0, 1: 3, 2: 2, 3: 1}  # of the descriptor, by swizzle bits


def wgmma_smem_atom(major: str, mode: str, val_bits: int) -> Any:
    """The smallest layout of an operand that a swizzling mode allows, in elements of `val_bits` bits.

    `major` is "K", for (8,K), or "MN", for (MN,8). The result is `S<...> o 0 o layout`, or a plain layout for
    "INTER". Raises `LayoutError` (E0213) for names or widths that do not exist.
    """
    if major not in ("K", "MN") or mode not in SWIZZLE_BITS or val_bits not in (8, 16, 32, 64):
        raise LayoutError(
            Code.BAD_ARGUMENT,
            f"wgmma has no {major}-major layout {mode} of {val_bits}-bit elements",
            f"majors are K and MN, layouts {', '.join(SWIZZLE_BITS)}; elements have 8, 16 or 32 bits, and 64 for tensor"
            " copies alone",
        )
    bits = SWIZZLE_BITS[mode]
    row = 128 << bits
    inner = Layout((8, row), (row, 1)) if major == "K" else Layout((row, 8), (1, row))
    return recast_layout(compose_parts(Swizzle(bits, 7, 3), 0, inner), 1, val_bits)


@final
@dataclass(frozen=True, slots=True)
class MatrixDescriptor:
    """A matrix descriptor of wgmma: the address and the two strides are in units of 16 bytes."""

    start_address: int
    leading_byte_offset: int
    stride_byte_offset: int
    layout_type: int
    base_offset: int = 0

    @property
    def value(self) -> int:
        """The 64 bits of the descriptor."""
        return (
            self.start_address & 0x3FFF
            | (self.leading_byte_offset & 0x3FFF) << 16
            | (self.stride_byte_offset & 0x3FFF) << 32
            | (self.base_offset & 7) << 49
            | self.layout_type << 62
        )


def make_matrix_descriptor(
    layout: Layout, swizzle_bits: int, val_bits: int, major: str, address: int
) -> MatrixDescriptor:
    """The descriptor of one operand of one instruction.

    `layout` is that of the operand (MN,K) in elements of `val_bits` bits, without the swizzle, which
    `swizzle_bits` names (0 to 3); `address` is that of its first element in bytes. Raises `LayoutError`
    (E0315) if no descriptor describes the layout.
    """
    wide: Layout = recast_layout(layout, val_bits, 128)
    width = 1 << swizzle_bits
    tile = (Layout(width, 1), Layout(8, 1)) if major == "MN" else (Layout(8, 1), Layout(2, 1))
    canonical: Layout = logical_divide(wide, tile)
    depth = 256 // val_bits if major == "MN" else 2
    contiguous = wide.size * 128 == layout.size * val_bits
    whole = wide[0].size % 8 == 0 if major == "K" else wide[0].size % width == 0
    if not (contiguous and whole and wide[1].size == depth and congruent(canonical.shape, ((1, 1), (1, 1)))):
        raise _not_canonical(layout, swizzle_bits, major)
    d00, d01, d10, d11 = flatten_to_tuple(canonical.stride)
    if major == "MN":
        fits = (swizzle_bits == 0 or d00 == 1) and d10 == width
        leading, stride = (d11, d01) if swizzle_bits == 0 else (d01, d11)
    else:
        fits = d00 == width and (swizzle_bits == 0 or d10 == 1)
        leading, stride = d10, d01
    if not fits:
        raise _not_canonical(layout, swizzle_bits, major)
    return MatrixDescriptor(address >> 4, leading, stride, _LAYOUT_TYPE[swizzle_bits])


def _not_canonical(layout: Layout, swizzle_bits: int, major: str) -> LayoutError:
    return LayoutError(
        Code.NOT_A_WGMMA_OPERAND,
        f"no descriptor describes the {major}-major operand {layout} with a swizzle of {swizzle_bits} bits",
        "tile the operand's shared memory from a layout of wgmma_smem_atom",
    )
