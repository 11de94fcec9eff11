# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The memories of the GPU."""

from enum import Enum

from ...base.spaces import DSMEM, GMEM, RMEM, SMEM, TMEM


class AddressSpace(Enum):
    """The memory of a pointer, a tensor or an array, by its number in LLVM's NVPTX back end."""

    generic = 0
    gmem = GMEM.llvm
    smem = SMEM.llvm
    rmem = RMEM.llvm
    tmem = TMEM.llvm
    dsmem = DSMEM.llvm
