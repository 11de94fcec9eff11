# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where matrices are in shared memory by their descriptors, and their elements (PTX ISA, tcgen05: Canonical layouts,
Shared memory descriptor).

A matrix is made of rows of 16 bytes. The hardware exchanges bits of each row's address: with the form of 128 bytes bits
4 to 6 with 7 to 9, of 64 bytes 4 and 5 with 7 and 8, of 32 bytes 4 with 7, and of 128 bytes in units of 32 bits 5 and 6
with 7 and 8.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ....layout.atoms.umma_descriptors import SmemDescriptor, Swizzling

ROW = 16
"""The bytes of a row."""
CIRCULAR = 48
"""The bytes along K of a matrix that may go on in another buffer: 96 elements of 4 bits."""


@dataclass(frozen=True, slots=True, eq=False)
class SharedMatrix:
    """The addresses of a matrix's rows of 16 bytes: (MN, rows of K) where K is contiguous, else (K, rows of MN)."""

    addresses: NDArray[np.int64]
    swizzle_bits: int
    problem: str = ""
    """The fault of the descriptor, in words."""


@lru_cache(maxsize=2048)
def shared_matrix(descriptor: int, extent: int, k_bytes: int, bits: int, mn_major: bool) -> SharedMatrix:
    """The rows of an operand of `extent` along M or N and `k_bytes` along K, of elements of `bits` bits."""
    given = SmemDescriptor.decode(descriptor)
    problem = next(given.problems(), "")
    if problem:
        return SharedMatrix(np.zeros((1, 1), np.int64), 0, f"it has {problem}")
    form = Swizzling(given.swizzling)
    if (form is Swizzling.BYTES_128_ATOM_32) != (mn_major and bits == 32):
        text = "form 1, of 128 bytes in units of 32, is that of tf32 that is MN-major, and of nothing else"
        return SharedMatrix(np.zeros((1, 1), np.int64), 0, text)
    if given.is_absolute and (mn_major or k_bytes != CIRCULAR or form is not Swizzling.BYTES_128):
        text = f"its leading field is an address, which only {CIRCULAR} bytes of K swizzled by 128 bytes have"
        return SharedMatrix(np.zeros((1, 1), np.int64), 0, text)
    width = {Swizzling.NONE: 1, Swizzling.BYTES_32: 2, Swizzling.BYTES_64: 4}.get(form, 8)
    deep = 4 if form is Swizzling.BYTES_128_ATOM_32 else 8
    leading, stride = given.leading, given.stride
    if not mn_major:
        rows, parts = np.arange(extent)[:, None], np.arange(-(-k_bytes // ROW))
        used = stride if extent > deep else 0, 0
        places = rows % 8 * width + rows // 8 * stride + parts * (1 if width > 1 else leading)
        if given.is_absolute:  # a row that ends goes on at the start of another buffer's row
            beyond = (given.start % width + parts) // width
            places = places + beyond * (leading - given.start // width * width - width)
    else:
        k = k_bytes * 8 // bits
        rows, parts = np.arange(k)[:, None], np.arange(max(1, extent * bits // 8 // ROW))
        used = stride if k > deep else 0, leading if len(parts) > width else 0
        if width > 1:
            places = parts % width + parts // width * leading + rows % deep * width + rows // deep * stride
        else:
            places = parts * stride + rows % 8 + rows // 8 * leading
    addresses = (given.start + places) * ROW
    near = [distance for distance in used if 0 < distance < deep * width]
    if width > 1 and near and len(np.unique(places)) < places.size:  # parts of rows may lie between each other
        major = "MN" if mn_major else "K"
        problem = f"its atoms of {deep * width * ROW} bytes overlap, as they are {near[0] * ROW} bytes apart; "
        problem += f"the instruction descriptor says that it is {major}-major"
        return SharedMatrix(addresses, form.bits, problem)
    if form is Swizzling.BYTES_128_ATOM_32:
        return SharedMatrix(addresses ^ (addresses >> 7 & 3) << 5, form.bits)
    expected = given.start >> 3 & (width - 1)
    if given.base_offset != expected and width > 1:
        begins = f"its matrix begins in row {expected} of the pattern of its swizzle"
        problem = f"{begins}, and the base offset is {given.base_offset}"
    return SharedMatrix(addresses ^ ((addresses >> 7) - given.base_offset & (width - 1)) << 4, form.bits, problem)
