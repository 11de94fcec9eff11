# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arrays that share memory: which bytes belong together, and copies of them that overlap in the same way."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..engine import Argument, TensorArgument


@dataclass(frozen=True, slots=True)
class Stretch:
    """Bytes that arrays share, from the first address of one of them to the last of another."""

    start: int
    size: int


def stretches(storages: Iterable[NDArray[Any]]) -> Mapping[int, Stretch]:
    """The stretch of each array, by its identity; those of arrays that overlap are one."""
    ranges = sorted({id(s): (s.ctypes.data, s.ctypes.data + s.nbytes, id(s)) for s in storages}.values())
    found: dict[int, Stretch] = {}
    group: list[int] = []
    start = end = 0
    for first, last, key in ranges:
        if group and first >= end:
            found |= dict.fromkeys(group, Stretch(start, end - start))
            group = []
        if not group:
            start, end = first, last
        group.append(key)
        end = max(end, last)
    return found | dict.fromkeys(group, Stretch(start, end - start))


def copied(arguments: Mapping[str, Argument]) -> dict[int, NDArray[Any]]:
    """Copies of the arrays of a launch, by the identity of each; copies of arrays that share memory share it, too."""
    storages = [value.storage for value in arguments.values() if isinstance(value, TensorArgument)]
    where = stretches(storages)
    memory: dict[Stretch, NDArray[np.uint8]] = {}
    copies: dict[int, NDArray[Any]] = {}
    for storage in storages:
        stretch = where[id(storage)]
        if stretch not in memory:
            memory[stretch] = np.empty(stretch.size, np.uint8)
        at = storage.ctypes.data - stretch.start
        copy = memory[stretch][at : at + storage.nbytes].view(storage.dtype)
        copy[...] = storage
        copies[id(storage)] = copy
    return copies
