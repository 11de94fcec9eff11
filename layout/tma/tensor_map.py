# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensor maps, which describe a tensor in global memory to TMA (CUDA Driver API, Tensor Map Object Management)."""

from dataclasses import dataclass
from math import prod
from typing import final

from ...base.errors import Code, LayoutError
from ..algebra.inttuple import show

MAX_RANK = 5
MAX_BOX = 256
"""Elements of a box along one dimension."""
_MAX_EXTENT = 1 << 32
_MAX_STRIDE = 1 << 40
UNIT = 16
"""Addresses, strides and the rows of a box are multiples of it, in bytes."""
PADDED_ROW = 128
"""The elements in a row of a box of padded elements; a tensor's rows have a multiple of it."""
PADDED_UNIT = 32
"""Addresses and strides of tensors of padded elements are multiples of it, in bytes."""
SHARED_ALIGNMENT = 128
"""The bytes to which the address in shared memory of a TMA copy is aligned (PTX ISA, cp.async.bulk.tensor)."""

SWIZZLE_NAMES = ("NONE", "32B", "64B", "128B", "128B_ATOM_32B")
"""CUtensorMapSwizzle by the number of bits that are swizzled; the last swizzles two, of units of 32 bytes."""
ATOMS_OF_32 = 4
"""The number of that swizzle, which operands of tf32 have that are MN-major (tcgen05.mma)."""


def swizzle_span(swizzle: int) -> int:
    """The bytes of a row that a swizzle permutes."""
    return 128 if swizzle == ATOMS_OF_32 else UNIT << swizzle


@final
@dataclass(frozen=True, slots=True)
class TensorMap:
    """The arguments of cuTensorMapEncodeTiled that layouts decide.

    `dims` are extents in elements of `bits` bits, innermost first; `strides` the bytes between neighbours of all
    dimensions but the innermost; `box` the extents that one instruction moves. `swizzle_bits` bits of the addresses in
    shared memory are swizzled, from 0 to 3, or it is `ATOMS_OF_32`. The interleave is none, element strides are 1, and
    elements outside the tensor are zero. Of `padded` elements 16 begin each 16 bytes of shared memory.

    Raises `LayoutError` (E0322) for a tensor that no map describes, (E0323) for a box that TMA does not move.
    """

    bits: int
    dims: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    swizzle_bits: int = 0
    padded: bool = False

    def __post_init__(self) -> None:
        if not 1 <= len(self.dims) <= MAX_RANK:
            raise _no_map(f"it has {len(self.dims)} dimensions", f"a map has 1 to {MAX_RANK}")
        for mode, extent in enumerate(self.dims):
            if not 1 <= extent <= _MAX_EXTENT:
                raise _no_map(f"dimension {mode} has the extent {extent}", f"extents are 1 to {_MAX_EXTENT}")
        for mode, stride in enumerate(self.strides, 1):
            check_stride(mode, stride)
        if self.padded:
            self._check_padded()
        self._check_box()

    def _check_padded(self) -> None:
        """The rules of 16U4_ALIGN16B and 16U6_ALIGN16B (CUDA Driver API, cuTensorMapEncodeTiled)."""
        if self.dims[0] % PADDED_ROW:
            hint = f"rows of padded elements have a multiple of {PADDED_ROW}"
            raise _no_map(f"its rows have {self.dims[0]} elements", hint)
        for mode, stride in enumerate(self.strides, 1):
            if stride % PADDED_UNIT:
                hint = f"those of padded elements are multiples of {PADDED_UNIT} bytes"
                raise _no_map(f"dimension {mode} has a stride of {stride} bytes", hint)
        if self.box[0] != PADDED_ROW:
            text = f"the rows of the box {show(self.box)} have {self.box[0]} padded elements"
            raise LayoutError(Code.TMA_BOX, text, f"such rows have {PADDED_ROW} elements: use a tile of {PADDED_ROW}")
        if self.swizzle_bits not in (0, 3, ATOMS_OF_32):
            text = f"copies of padded elements do not swizzle by {self.swizzle_name}"
            raise LayoutError(Code.TMA_BOX, text, "their swizzles are none, 128B and 128B_ATOM_32B")

    def _check_box(self) -> None:
        for mode, extent in enumerate(self.box):
            if not 1 <= extent <= MAX_BOX:
                hint = f"an instruction moves 1 to {MAX_BOX} elements along a dimension: use a smaller tile"
                raise LayoutError(
                    Code.TMA_BOX, f"the box {show(self.box)} has the extent {extent} in mode {mode}", hint
                )
        row = self.box[0] if self.padded else self.box[0] * self.bits // 8
        if self.box[0] * self.bits % (8 * UNIT):
            hint = f"rows are multiples of {UNIT} bytes: use a wider tile"
            raise LayoutError(Code.TMA_BOX, f"the rows of the box {show(self.box)} have {row} bytes", hint)
        span = swizzle_span(self.swizzle_bits)
        if self.swizzle_bits and row > span:
            wider = f"use a swizzle of {row} bytes, or " if row in (64, 128) else ""
            hint = f"{wider}give the tile modes of {span} bytes that follow each other in shared memory"
            problem = f"the rows of the box {show(self.box)} have {row} bytes, more than the {span} of its swizzle"
            raise LayoutError(Code.TMA_BOX, problem, hint)

    @property
    def swizzle_name(self) -> str:
        """The name of the swizzle in CUtensorMapSwizzle."""
        return SWIZZLE_NAMES[self.swizzle_bits]

    @property
    def bytes(self) -> int:
        """The bytes that one instruction moves, elements outside the tensor included, as an mbarrier counts them."""
        return prod(self.box) * self.bits // 8

    @property
    def shared_bytes(self) -> int:
        """The bytes of shared memory that these take, with those between padded elements."""
        return prod(self.box) if self.padded else self.bytes

    def check_address(self, address: int) -> None:
        """Raises `LayoutError` (E0322) for an address that a tensor with a map cannot have."""
        unit = PADDED_UNIT if self.padded else UNIT
        if address % unit:
            raise _no_map(f"it begins at the address {address:#x}", f"addresses are multiples of {unit}")


def check_stored_rows(elements: int, bits: int) -> None:
    """Raises `LayoutError` (E0322) for rows of elements that copies cannot store to: GPUs end them by whole units."""
    row = elements * bits // 8
    if row % UNIT:
        problem = f"it is stored, and its rows have {row} bytes; GPUs write multiples of {UNIT}"
        raise _no_map(problem, f"store tensors whose rows are multiples of {UNIT} bytes, or store without TMA copies")


def check_rows(name: str, bits: int) -> None:
    """Raises `LayoutError` (E0322) unless the contiguous mode of a tensor, of this many bits, may be the stride of the
    next one.
    """
    if bits % (8 * UNIT):
        hint = f"they are multiples of {UNIT} bytes: pad the rows of the tensor"
        raise _no_map(f"the rows of {name} have {bits / 8:g} bytes", hint)


def check_stride(mode: int, stride: int) -> None:
    """Raises `LayoutError` (E0322) unless a dimension beyond the innermost can have this stride in bytes."""
    if stride % UNIT:
        hint = f"strides are multiples of {UNIT} bytes: pad the rows of the tensor"
        raise _no_map(f"dimension {mode} has a stride of {stride} bytes", hint)
    if not 0 <= stride < _MAX_STRIDE:
        raise _no_map(f"dimension {mode} has a stride of {stride} bytes", f"strides are below {_MAX_STRIDE}")


def _no_map(problem: str, hint: str) -> LayoutError:
    return LayoutError(Code.TENSOR_MAP, f"no tensor map describes the tensor: {problem}", hint)
