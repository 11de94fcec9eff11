# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a warp's memory access costs: shared-memory wavefronts and global-memory sectors.

Shared memory has 32 banks of 4 bytes; a wavefront serves each bank once, and any number of lanes that read
one word of a bank (CUDA C++ Programming Guide, Shared Memory). Accesses of 8 bytes are served by half warps
and of 16 bytes by quarter warps; ldmatrix serves each 8x8 matrix, of eight 16-byte rows, by itself. Global
memory moves sectors of 32 bytes.
"""

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

_BANKS, _WORD, _SECTOR = 32, 4, 32


def wavefronts(addresses: NDArray[Any], lanes: NDArray[Any], width: int) -> tuple[int, int]:
    """Wavefronts of an access of `width` bytes by `lanes` at byte `addresses`, and the least possible for
    that many.
    """
    period = _BANKS * _WORD  # moving all addresses by it changes no bank
    start = int(addresses[0]) // period * period
    return _wavefronts((addresses - start).tobytes(), lanes.astype(np.int64).tobytes(), width)


@lru_cache(maxsize=4096)
def _wavefronts(addresses: bytes, lanes: bytes, width: int) -> tuple[int, int]:
    group = np.frombuffer(lanes, np.int64) // max(1, min(32, period_lanes(width)))
    words = np.frombuffer(addresses, np.int64)[:, None] // _WORD + np.arange(max(1, width // _WORD))
    total = groups = 0
    for number in np.unique(group):
        used = np.unique(words[group == number])
        total += int(np.bincount(used % _BANKS).max())
        groups += 1
    return total, groups


def period_lanes(width: int) -> int:
    """How many lanes are served together in an access of `width` bytes each."""
    return 32 if width <= 4 else 128 // width


def sectors(addresses: NDArray[Any], width: int) -> tuple[int, int]:
    """Sectors that an access of `width` bytes at `addresses` touches, and the least that as many bytes can
    occupy.
    """
    start = int(addresses[0]) // _SECTOR * _SECTOR
    return _sectors((addresses - start).tobytes(), width)


@lru_cache(maxsize=4096)
def _sectors(addresses: bytes, width: int) -> tuple[int, int]:
    offsets = np.frombuffer(addresses, np.int64)
    touched = len(np.unique(offsets // _SECTOR))
    distinct = len(np.unique(offsets)) * width
    return touched, -(-distinct // _SECTOR)
