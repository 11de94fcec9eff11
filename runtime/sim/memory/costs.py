# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The costs of a warp's memory access: wavefronts of shared memory (`layout.tiling.banks`), sectors of global memory
(`layout.tiling.sectors`).
"""

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....base.target import BANK_BYTES, BANKS, SECTOR_BYTES
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


def sectors(addresses: NDArray[Any], width: int) -> tuple[int, int]:
    """Sectors that an access of `width` bytes at `addresses` touches, and the least that as many bytes can
    occupy.
    """
    start = int(addresses[0]) // SECTOR_BYTES * SECTOR_BYTES
    return _sectors((addresses - start).tobytes(), width)


@lru_cache(maxsize=4096)
def _sectors(addresses: bytes, width: int) -> tuple[int, int]:
    return layout_sectors.sectors(np.frombuffer(addresses, np.int64).tolist(), width)
