# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How tcgen05.mma finds its operands in shared memory: swizzled layouts, and the descriptors that name them (PTX ISA,
Shared memory layout and swizzling, Canonical layouts; CuTe's mma_sm100_desc.hpp).

The layouts are those of wgmma, for elements of 4 bits too, and one more: MN-major rows of 128 bytes whose units are 32
bytes, for tf32.
"""

from typing import Any

from ...base.errors import Code, LayoutError
from ..algebra.core import AnyLayout, ComposedLayout, Layout, LayoutLike, plain_layout
from ..algebra.divide import logical_divide, tiled_divide
from ..algebra.inttuple import congruent, flatten_to_tuple, product_each
from ..algebra.modes import compose_parts
from ..algebra.product import tile_to_shape
from ..algebra.recast import recast_layout
from ..algebra.swizzle import Swizzle
from .umma_descriptors import SmemDescriptor, Swizzling
from .wgmma_smem import SWIZZLE_BITS, UNIT, swizzled_rows

UMMA_MODES = (*SWIZZLE_BITS, "SW128_32B")
"""The swizzling modes by CuTe's names."""
_BY_BITS = {0: Swizzling.NONE, 1: Swizzling.BYTES_32, 2: Swizzling.BYTES_64, 3: Swizzling.BYTES_128}
_UNITS = {
    Swizzling.NONE: 1, Swizzling.BYTES_32: 2, Swizzling.BYTES_64: 4, Swizzling.BYTES_128: 8,
    Swizzling.BYTES_128_ATOM_32: 8,
}  # fmt: skip
"""The units of 16 bytes in a row of each form."""


def umma_smem_atom(major: str, mode: str, val_bits: int) -> LayoutLike:
    """The smallest layout of an operand that a swizzling mode allows, in elements of `val_bits` bits: (8,K) for the
    major "K", (MN,8) for "MN", (MN,4) for "SW128_32B".

    Raises `LayoutError` (E0213) for names or widths that do not exist: elements of 6 bits take bytes, and are laid out
    as such.
    """
    if major not in ("K", "MN") or mode not in UMMA_MODES or val_bits not in (4, 8, 16, 32):
        raise LayoutError(
            Code.BAD_ARGUMENT,
            f"tcgen05.mma has no {major}-major layout {mode} of {val_bits}-bit elements",
            f"majors are K and MN, layouts {', '.join(UMMA_MODES)}; elements have 4, 8, 16 or 32 bits",
        )
    if mode == "SW128_32B":
        if major == "K":
            raise LayoutError(Code.BAD_ARGUMENT, f"the layout {mode} is MN-major only")
        return recast_layout(compose_parts(Swizzle(2, 8, 2), 0, Layout((1024, 4), (1, 1024))), 1, val_bits)
    return swizzled_rows(major, SWIZZLE_BITS[mode], val_bits)


def select_umma_mode(major: str, val_bits: int, extent_mn: int, extent_k: int) -> str:
    """The mode of the widest rows that divide a tile of `extent_mn` by `extent_k` elements (CUTLASS's
    sm100_smem_selector). Of 32-bit elements that are MN-major there is one.

    Raises `LayoutError` (E0213) where none does.
    """
    extent = extent_k if major == "K" else extent_mn
    transposed_words = major == "MN" and val_bits == 32
    for mode in ("SW128_32B",) if transposed_words else ("SW128", "SW64", "SW32", "INTER"):
        row = (128 << SWIZZLE_BITS.get(mode, 3)) // val_bits
        if extent > 0 and extent % row == 0 and not extent_mn % 8 and not extent_k % 8:
            return mode
    raise LayoutError(
        Code.BAD_ARGUMENT,
        f"a {major}-major tile of {extent_mn} x {extent_k} elements of {val_bits} bits has no layout for tcgen05.mma",
        f"its extents are multiples of 8, the contiguous one of {128 if transposed_words else UNIT} bytes",
    )


def tile_to_mma_shape(atom: LayoutLike, shape: Any, order: Any = None) -> AnyLayout:
    """A layout of shared memory for a part of an operand of `shape` ((MN,K),RestMN,RestK,...), tiled from `atom` in the
    order of the modes of the operand that `order` says.

    Raises `LayoutError` if the atom does not divide the operand.
    """
    tile, rest = shape[0], shape[1:3]
    operand = tuple(zip(tile, rest, strict=True)) + tuple(shape[3:])
    tiled = tile_to_shape(atom, operand) if order is None else tile_to_shape(atom, operand, order)
    return tiled_divide(tiled, product_each(tile))


def swizzling_of(layout: LayoutLike, val_bits: int) -> Swizzling:
    """The form of a tensor in shared memory, of elements of `val_bits` bits. Raises `LayoutError` (E0315) for a swizzle
    that tcgen05.mma does not have.
    """
    if not isinstance(layout, ComposedLayout):
        return Swizzling.NONE
    swizzle, unit = layout.inner, 7 - val_bits.bit_length() + 1
    if swizzle == Swizzle(2, unit + 1, 2):
        return Swizzling.BYTES_128_ATOM_32
    for bits, form in _BY_BITS.items():
        if swizzle == Swizzle(bits, unit, 3):
            return form
    raise LayoutError(
        Code.NOT_A_WGMMA_OPERAND,
        f"tcgen05.mma has no swizzle {swizzle} of {val_bits}-bit elements",
        "tile the operand's shared memory from a layout of umma_smem_atom",
    )


def make_umma_descriptor(layout: Layout, form: Swizzling, val_bits: int, major: str, address: int) -> SmemDescriptor:
    """The descriptor of one operand of one instruction.

    `layout` is that of the operand (MN,K) in elements of `val_bits` bits, without the swizzle, which `form` names;
    `address` is that of its first element in bytes. Raises `LayoutError` (E0315) if no descriptor describes the layout.
    """
    row = _UNITS[form]
    depth = 4 if form is Swizzling.BYTES_128_ATOM_32 else 8
    tile = (Layout(row, 1), Layout(depth, 1)) if major == "MN" else (Layout(8, 1), Layout(2, 1))
    try:
        wide: Layout = recast_layout(layout, val_bits, 8 * UNIT)
        canonical: Layout = logical_divide(wide, tile)
    except LayoutError as error:  # rows that are not multiples of 16 bytes, or do not divide
        raise _not_canonical(layout, form, major) from error
    rows, unit = layout[0].size, 8 * UNIT // val_bits
    whole = layout.size // rows * max(rows, unit) if major == "MN" else layout.size  # rows may end within a unit
    contiguous = wide.size * unit == whole
    if not (contiguous and len(wide) == 2 and congruent(canonical.shape, ((1, 1), (1, 1)))):
        raise _not_canonical(layout, form, major)
    d00, d01, d10, d11 = flatten_to_tuple(canonical.stride)
    plain = form is Swizzling.NONE
    if major == "MN":
        fits = (plain or d00 == 1) and d10 == row
        leading, stride = (d11, d01) if plain else (d01, d11)
    else:
        fits = form is not Swizzling.BYTES_128_ATOM_32 and d00 == row and (plain or d10 == 1)
        fits = fits and wide[0].size % 8 == 0 and wide[1].size == 2
        leading, stride = d10, d01
    if not fits:
        raise _not_canonical(layout, form, major)
    return SmemDescriptor(address >> 4, leading, stride, form.value)


def circular_descriptor(layout: Layout, form: Swizzling, val_bits: int) -> SmemDescriptor:
    """The descriptor of an operand with K = 96 whose rows of 48 bytes go on in another buffer where those of its own
    end: its leading field is left to the address of that buffer (CuTe's mma_traits_sm100.hpp, SM103::mma_unpack).

    `layout` is (MN,K) in elements of `val_bits` bits, where the operand begins. Raises `LayoutError` (E0315) unless its
    rows are K-major and swizzled by 128 bytes.
    """
    row = _UNITS[form]
    if form is Swizzling.BYTES_128 and len(layout) == 2:
        groups = logical_divide(recast_layout(layout, val_bits, 8 * UNIT), (Layout(8, 1), Layout(1, 0)))
        strides = flatten_to_tuple(groups[0].stride)
        if congruent(groups[0].shape, (1, 1)) and strides[0] == row and layout[1][0].stride in (1, (1,)):
            return SmemDescriptor(0, 0, strides[1], form.value, is_absolute=True)
    raise _not_canonical(layout, form, "K")


def umma_descriptor(layout: LayoutLike, val_bits: int, major: str, address: int = 0) -> SmemDescriptor:
    """The descriptor of an operand of one instruction that lies in shared memory by `layout` (MN,K), swizzled or plain.

    Raises `LayoutError` (E0315) if no descriptor describes the layout.
    """
    return make_umma_descriptor(plain_layout(layout), swizzling_of(layout, val_bits), val_bits, major, address)


def operand_alignment(form: Swizzling) -> int:
    """The alignment in bytes of the memory of an operand: the period of its swizzle, which is one of addresses; without
    one, that of a row.
    """
    periods = {Swizzling.NONE: UNIT, Swizzling.BYTES_32: 256, Swizzling.BYTES_64: 512}
    return periods.get(form, 1024)


def _not_canonical(layout: Layout, form: Swizzling, major: str) -> LayoutError:
    return LayoutError(
        Code.NOT_A_WGMMA_OPERAND,
        f"no descriptor of tcgen05.mma describes the {major}-major operand {layout} with swizzling {form.name}",
        "tile the operand's shared memory from a layout of umma_smem_atom",
    )
