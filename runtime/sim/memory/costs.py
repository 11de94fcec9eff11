# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The costs of a warp's memory access: wavefronts of shared memory (`layout.tiling.banks`), sectors of global memory
(`layout.tiling.sectors`).
"""

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....base.target import BANK_BYTES, BANKS, SECTOR_BYTES, WARP
from ....layout.tiling import banks
from ....layout.tiling import sectors as layout_sectors


def wavefronts(addresses: NDArray[Any], lanes: NDArray[Any], width: int) -> tuple[int, int]:
    """Wavefronts of an access of `width` bytes by `lanes` at byte `addresses`, and the least possible for
    that many.
    """
    period = BANKS * BANK_BYTES  # moving all addresses by it changes no bank
    start = int(addresses[0]) // period * period
    return _wavefronts((addresses - start).tobytes(), lanes.astype(np.int64).tobytes(), width)


@lru_cache(maxsize=4096)
def _wavefronts(addresses: bytes, lanes: bytes, width: int) -> tuple[int, int]:
    return banks.wavefronts(np.frombuffer(addresses, np.int64).tolist(), np.frombuffer(lanes, np.int64).tolist(), width)


def sectors(addresses: NDArray[Any], width: int, lanes: NDArray[Any] | None = None) -> tuple[int, int]:
    """Sectors that an access of `width` bytes by `lanes` at byte `addresses` touches, and the least that as many bytes
    can occupy; the sum over the warps of the `lanes`, where those are of several.
    """
    start = int(addresses[0]) // SECTOR_BYTES * SECTOR_BYTES
    warps = b"" if lanes is None or lanes[-1] < WARP else (lanes // WARP).tobytes()
    return _sectors((addresses - start).tobytes(), warps, width)


@lru_cache(maxsize=4096)
def _sectors(addresses: bytes, warps: bytes, width: int) -> tuple[int, int]:
    at, number = np.frombuffer(addresses, np.int64), np.frombuffer(warps, np.int64)
    parts = [at[number == warp] for warp in np.unique(number)] if warps else [at]
    counts = [layout_sectors.sectors(part.tolist(), width) for part in parts]
    return sum(touched for touched, _ in counts), sum(least for _, least in counts)
