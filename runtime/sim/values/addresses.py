# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Addresses of 64 bits and distances from them: too large a distance leads out of all memory and not around it."""

import numpy as np

from . import Value, varies

FAR = 1 << 62
"""The distance, in bytes, beyond which no memory is; aligned to any size."""
_NEAR = 1 << 32


def add_address(address: Value, offset: Value) -> Value:
    """An address plus a signed offset of any width, no further than `FAR` from 0 where it could wrap otherwise."""
    if not varies(offset):
        if not varies(address):
            return min(max(address + offset, -FAR), FAR)
        if -_NEAR < offset < _NEAR:
            return address + offset
        offset = np.int64(min(max(offset, -FAR), FAR))
    elif offset.dtype != np.int64:
        return address + offset.astype(np.int64)
    return np.clip(address + np.clip(offset, -FAR, FAR), -FAR, FAR)
