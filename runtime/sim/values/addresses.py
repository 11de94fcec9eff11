# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Addresses of 64 bits and distances from them: too large a distance leads out of all memory and not around it."""

import numpy as np

from . import Value, varies

FAR = 1 << 62
"""The distance, in bytes, beyond which no memory is; aligned to any size."""
_NEAR = 1 << 32


def not_far(value: Value) -> Value:
    """An integer, or the nearest one to which a small one can be added in 64 bits."""
    if varies(value):
        return np.clip(value, -FAR, FAR).astype(np.int64)
    return min(max(value, -FAR), FAR)


def add_address(address: Value, offset: Value) -> Value:
    """An address plus a signed offset of any width, no further than `FAR` from 0 where it could wrap otherwise."""
    if not varies(offset):
        if varies(address) and -_NEAR < offset < _NEAR:
            return address + offset
    elif offset.dtype != np.int64:
        return address + offset.astype(np.int64)
    return not_far(address + not_far(offset))
