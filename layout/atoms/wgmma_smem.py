# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How wgmma finds its operands in shared memory: swizzled layouts, and the descriptors that name them.

PTX ISA, Asynchronous warpgroup-level matrix instructions: shared memory matrix layout, matrix descriptor
format.
"""

from dataclasses import dataclass
from typing import final

from ...base.errors import Code, LayoutError
from ..algebra.core import ComposedLayout, Layout, LayoutLike, plain_layout
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

UNIT = 16
"""The unit of the fields of descriptors, in bytes."""
START_MASK = (1 << 14) - 1
"""The width of a descriptor's address field, and of its offset fields, in bits."""


def wgmma_smem_atom(major: str, mode: str, val_bits: int) -> LayoutLike:
    """The smallest layout of an operand that a swizzling mode allows, in elements of `val_bits` bits.

    `major` is "K", for (8,K), or "MN", for (MN,8). The result is `S<...> o 0 o layout`, or a plain layout for
    "INTER". Raises `LayoutError` (E0213) for names or widths that do not exist.
    """
    is_known = val_bits in (8, 16, 32, 64) or (val_bits == 4 and major == "K")
    if major not in ("K", "MN") or mode not in SWIZZLE_BITS or not is_known:
        raise LayoutError(
            Code.BAD_ARGUMENT,
            f"wgmma has no {major}-major layout {mode} of {val_bits}-bit elements",
            f"majors are K and MN, layouts {', '.join(SWIZZLE_BITS)}; elements have 8, 16 or 32 bits, and 64, or 4 of "
            "K-major layouts, only for TMA copies",
        )
    return swizzled_rows(major, SWIZZLE_BITS[mode], val_bits)


def swizzled_rows(major: str, bits: int, val_bits: int) -> LayoutLike:
    """Eight rows of 16 bytes times 2**`bits`, along K or M and N, whose addresses have this many bits swizzled."""
    row = 128 << bits
    outer = Layout((8, row), (row, 1)) if major == "K" else Layout((row, 8), (1, row))
    return recast_layout(compose_parts(Swizzle(bits, 7, 3), 0, outer), 1, val_bits)


def find_widest_mode(extent: int, val_bits: int) -> str:
    """The swizzling mode of the longest rows that divide `extent` elements of the contiguous mode. Raises `LayoutError`
    (E0213) where none does.
    """
    for mode, bits in sorted(SWIZZLE_BITS.items(), key=lambda item: -item[1]):
        if extent > 0 and extent * val_bits % (128 << bits) == 0:
            return mode
    raise LayoutError(
        Code.BAD_ARGUMENT,
        f"{extent} elements of {val_bits} bits along the contiguous mode are not a multiple of {UNIT} bytes",
        f"take a tile of a multiple of {UNIT * 8 // val_bits} elements there",
    )


@final
@dataclass(frozen=True, slots=True)
class MatrixDescriptor:
    """A matrix descriptor of wgmma: the address and the two strides are in units of 16 bytes."""

    start_address: int
    leading_byte_offset: int
    stride_byte_offset: int
    layout_type: int
    base_offset: int = 0

    @staticmethod
    def of(start: int, leading: int, stride: int, swizzle_bits: int) -> "MatrixDescriptor":
        """The descriptor with a swizzle by its bits, 0 to 3; the others are in units of 16 bytes."""
        return MatrixDescriptor(start, leading, stride, _LAYOUT_TYPE[swizzle_bits])

    @property
    def swizzle_bits(self) -> int:
        """The bits of the address that the swizzle xors."""
        return next(bits for bits, type in _LAYOUT_TYPE.items() if type == self.layout_type)

    @property
    def value(self) -> int:
        """The 64 bits of the descriptor."""
        return (
            self.start_address & START_MASK
            | (self.leading_byte_offset & START_MASK) << 16
            | (self.stride_byte_offset & START_MASK) << 32
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
    width = 1 << swizzle_bits
    tile = (Layout(width, 1), Layout(8, 1)) if major == "MN" else (Layout(8, 1), Layout(2, 1))
    try:
        wide: Layout = recast_layout(layout, val_bits, 128)
        canonical: Layout = logical_divide(wide, tile)
    except LayoutError as error:  # rows that are not multiples of 16 bytes, or do not divide
        raise _not_canonical(layout, swizzle_bits, major) from error
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
    return MatrixDescriptor.of(address >> 4, leading, stride, swizzle_bits)


def find_operand_swizzle(layout: LayoutLike, val_bits: int) -> int:
    """The bits, 0 to 3, that the swizzle of a tensor in shared memory xors, of elements of `val_bits` bits.

    Raises `LayoutError` (E0315) for a swizzle that wgmma does not have.
    """
    if not isinstance(layout, ComposedLayout):
        return 0
    swizzle = layout.inner
    for bits in range(4):
        if swizzle == Swizzle(bits, 7 - val_bits.bit_length() + 1, 3):
            return bits
    raise LayoutError(
        Code.NOT_A_WGMMA_OPERAND,
        f"wgmma has no swizzle {swizzle} of {val_bits}-bit elements",
        "tile the operand's shared memory from a layout of wgmma_smem_atom",
    )


def operand_align(swizzle_bits: int) -> int:
    """The alignment in bytes of the memory of an operand: the period of its swizzle, as the hardware swizzles bits of
    the address; without one, that of a row.
    """
    return 128 << swizzle_bits if swizzle_bits else UNIT


def operand_descriptor(layout: LayoutLike, val_bits: int, major: str, address: int = 0) -> MatrixDescriptor:
    """The descriptor of an operand of one instruction that lies in shared memory by `layout` (MN,K), swizzled or plain.

    Raises `LayoutError` (E0315) if no descriptor describes the layout.
    """
    return make_matrix_descriptor(
        plain_layout(layout), find_operand_swizzle(layout, val_bits), val_bits, major, address
    )


def _not_canonical(layout: Layout, swizzle_bits: int, major: str) -> LayoutError:
    return LayoutError(
        Code.NOT_A_WGMMA_OPERAND,
        f"no descriptor describes the {major}-major operand {layout} with a swizzle of {swizzle_bits} bits",
        "tile the operand's shared memory from a layout of wgmma_smem_atom",
    )
