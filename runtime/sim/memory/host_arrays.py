# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Memory that a kernel reaches by addresses of the host: where the simulator has the copies of it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...engine import NumPyArray
from ..values import Value, varies


@dataclass(frozen=True, slots=True)
class Reached:
    """Pieces of the host's memory, in ascending order: where each begins and ends there, and where its copy begins."""

    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    copies: NDArray[np.int64]

    @classmethod
    def of(cls, memory: Sequence[NDArray[np.uint8]], copies: Sequence[int]) -> "Reached":
        """The pieces whose copies begin at some addresses of the simulator."""
        starts = np.array([piece.ctypes.data for piece in memory], np.int64)
        sizes = np.array([piece.nbytes for piece in memory], np.int64)
        return cls(starts, starts + sizes, np.array(copies, np.int64))

    def copy_of(self, memory: NumPyArray) -> int | None:
        """The address of the copy of an array; None if it is not within a piece."""
        address, end = memory.ctypes.data, memory.ctypes.data + memory.nbytes
        inside = (self.starts <= address) & (end <= self.ends)
        return int((self.copies + (address - self.starts))[inside][0]) if inside.any() else None

    def place(self, number: Value) -> Value:
        """The address in the simulator that a number stands for: of the copy, where it is an address of the host's
        memory, or else the number itself, as addresses of the simulator have numbers, too.
        """
        if not self.starts.size:
            return number
        given = np.asarray(number, np.int64)
        piece = np.maximum(np.searchsorted(self.starts, given, "right") - 1, 0)
        inside = (self.starts[piece] <= given) & (given < self.ends[piece])
        placed = np.where(inside, given - self.starts[piece] + self.copies[piece], given)
        return placed if varies(number) else int(placed)
