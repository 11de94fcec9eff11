# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Elements of 4 bits and 1 bit: packed in memory, the first in the lowest bits; one a byte to compute with."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]


def unpack(content: Bytes, bits: int, signed: bool = False) -> NDArray[Any]:
    """The elements of `bits` (4 or 1) in each byte, along the last axis: int8 where they are signed, else uint8.

    The last axis becomes 2 or 8 times as long.
    """
    if bits == 1:
        return np.unpackbits(content, axis=-1, bitorder="little")
    pairs = np.stack([content << 4, content & np.uint8(0xF0)], axis=-1).reshape(*content.shape[:-1], -1)
    return pairs.view(np.int8) >> 4 if signed else pairs >> 4


def pack(elements: NDArray[Any], bits: int) -> Bytes:
    """The bytes that hold `elements`, whose lowest `bits` (4 or 1) count; the inverse of `unpack`.

    The last axis is filled up with zeros to whole bytes.
    """
    low = elements.astype(np.uint8) & np.uint8((1 << bits) - 1)
    if bits == 1:
        return np.packbits(low, axis=-1, bitorder="little")
    if low.shape[-1] % 2:
        low = np.concatenate([low, np.zeros((*low.shape[:-1], 1), np.uint8)], axis=-1)
    return low[..., 0::2] | low[..., 1::2] * np.uint8(16)
