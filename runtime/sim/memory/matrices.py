# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where the matrices of a warpgroup's multiplication are in shared memory, by their descriptors (PTX ISA, Asynchronous
warpgroup-level matrix instructions: shared memory matrix layout, matrix descriptor format).

A matrix is made of rows of 16 bytes. The descriptor has the address of the first, and two strides. With a swizzle, the
hardware exchanges bits of each row's address: bits 4 to 6 with 7 to 9 of 128 bytes, 4 and 5 with 7 and 8 of 64 bytes, 4
with 7 of 32 bytes. The base offset is that of the first row in the pattern, which then begins there.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ....base.element_types import BY_PTX
from ....base.errors import Code
from ....base.spaces import Space as MemorySpace
from ....layout.algebra.core import Layout
from ....layout.atoms.contract import Major
from ....layout.atoms.mma_atom import MmaAtom
from ....layout.atoms.wgmma_smem import START_MASK, UNIT
from ..faults import Site
from ..values import Value
from ..warp import Warp
from .provenance import HINT
from .spaces import Space
from .tensors import element_address, tensor_value

ROW = 16
"""The bytes of a row."""
_FIELDS = 0x3FFF | 0x3FFF << 16 | 0x3FFF << 32 | 7 << 49 | 3 << 62
_SWIZZLE_BITS = {0: 0, 1: 3, 2: 2, 3: 1}  # by layout type


@dataclass(frozen=True, slots=True, eq=False)
class Matrix:
    """The addresses of a matrix's rows of 16 bytes: (MN, rows of K) where K is contiguous, (K, MN / 8) where M or N
    is."""

    addresses: NDArray[np.int64]
    swizzle: int
    """The bits that are exchanged."""
    problem: str = ""
    """The fault of the descriptor, in words."""

    @property
    def core_matrices(self) -> NDArray[np.int64]:
        """The addresses by core matrices, each of eight rows: (core matrices, 8)."""
        groups = self.addresses.reshape(-1, 8, self.addresses.shape[1])
        return groups.transpose(0, 2, 1).reshape(-1, 8)


def matrix_of(atom: MmaAtom, operand: str, descriptor: int) -> Matrix:
    """Operand "A" or "B" of an instruction by its descriptor."""
    m, n, k = atom.shape
    extent, k = (n, k) if operand == "B" else (m, atom.stored_k)
    rows = k * BY_PTX[atom.operand(operand).element].bits // 8 // ROW
    return _matrix(descriptor & (1 << 64) - 1, extent, k, rows, atom.operand(operand).major)


@lru_cache(maxsize=1024)
def _matrix(descriptor: int, extent: int, k: int, rows_of_k: int, major: Major) -> Matrix:
    start, leading, stride = ((descriptor >> shift & 0x3FFF) for shift in (0, 16, 32))
    offset, bits = descriptor >> 49 & 7, _SWIZZLE_BITS[descriptor >> 62]
    width = 1 << bits
    if major is Major.K:
        rows, parts = np.arange(extent)[:, None], np.arange(rows_of_k)
        places = rows % 8 * width + rows // 8 * stride + parts * (1 if bits else leading)
    else:
        rows, chunks = np.arange(k)[:, None], np.arange(extent // 8)
        if bits:
            places = chunks % width + chunks // width * leading + rows % 8 * width + rows // 8 * stride
        else:
            places = chunks * stride + rows % 8 + rows // 8 * leading
    addresses = (start + places) * ROW
    problem = ""
    if descriptor & ~_FIELDS:
        problem = "it has meaningless bits set: an address or a stride is too large for its field"
    elif offset != (start >> 3) & (width - 1):
        problem = (
            f"its matrix begins in row {(start >> 3) & (width - 1)} of the pattern of its swizzle, and the base offset "
            f"is {offset}"
        )
    return Matrix(addresses ^ ((addresses >> 7) - offset & (width - 1)) << 4, bits, problem)


def offsets_of(space: Space, matrix: NDArray[np.int64]) -> tuple[NDArray[np.int64], str | None]:
    """The offsets of a matrix's rows in shared memory, by their addresses; and the place of the first that is not the
    block's, in words.
    """
    offsets = matrix.ravel() - space.base
    outside = (offsets < 0) | (offsets > space.arena.span - ROW)
    absent = outside | (space.arena.state[ROW][np.where(outside, 0, offsets) // ROW] == 0).any(axis=1)
    return offsets, space.show(int(offsets[absent.argmax()]) + space.base) if absent.any() else None


@dataclass(frozen=True, slots=True)
class TiledOperand:
    """An operand of a matrix multiplication in a slot, of modes (V,X,Y) in elements of `bits`; `fields` of its
    descriptors, where it is in shared memory.
    """

    slot: int
    layout: Layout
    space: MemorySpace
    bits: int
    site: Site
    fields: int | None

    def at(self, warp: Warp, x: int, y: int) -> Value:
        """The address of the execution at coordinates of the last modes, or its descriptor."""
        tensor = tensor_value(warp.registers[self.slot])
        index = self.layout[1](x) + self.layout[2](y)
        address = element_address(tensor.address, tensor.offset + index, self.space, self.bits)
        return address if self.fields is None else descriptor_at(warp, self.site, address, self.fields)


def descriptor_at(warp: Warp, site: Site, address: Value, fields: int) -> Value:
    """A matrix descriptor, with `fields`, of an operand that begins at a shared address. SimulationError (E3202) where
    a coordinate outside its mode has led to the address.
    """
    lanes = np.unique(warp.select(address))
    for place in lanes.tolist():
        view = warp.launch.outside.describe(place)
        if view is not None:
            lane = int(warp.lane_numbers()[(warp.select(address) == place).argmax()])
            warp.fault(Code.SIM_OUT_OF_BOUNDS, site, lane, f"reads a matrix through {view}", HINT)
    return address // UNIT & START_MASK | fields
