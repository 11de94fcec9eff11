# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The memories of the GPU."""

from enum import Enum


class AddressSpace(Enum):
    """The memory of a pointer, a tensor or an array, by its number in LLVM's NVPTX back end."""

    generic = 0
    gmem = 1
    smem = 3
    rmem = 5
    tmem = 6
    dsmem = 7
