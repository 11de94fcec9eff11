# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The cost of an access of a warp to global memory.

Global memory is moved in sectors of 32 bytes; one that several lanes touch is moved once (CUDA C++ Best Practices
Guide, Coalesced Access to Global Memory).
"""

from collections.abc import Sequence

from ...base.target import SECTOR_BYTES


def sectors(addresses: Sequence[int], width: int) -> tuple[int, int]:
    """Sectors that an access of `width` bytes at byte `addresses` touches, and the least that hold as many bytes.

    Addresses are multiples of `width`, and bytes that several lanes access count once.
    """
    touched = {address // SECTOR_BYTES for address in addresses}
    return len(touched), -(-len(set(addresses)) * width // SECTOR_BYTES)
