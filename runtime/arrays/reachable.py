# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arrays in the host's memory that kernels may reach by their addresses, without being given them as arguments.

A GPU reaches any memory by a number. The simulator, which works on copies, must know where memory begins and ends: it
has copies of the arrays that were registered here and that still exist.
"""

import ctypes
import weakref
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

from .array import is_torch

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Reachable:
    """Memory by the objects that own it, which are not kept alive."""

    _owners: "dict[int, tuple[weakref.ref[Any], int]]" = field(default_factory=lambda: {})

    def add(self, array: object) -> None:
        """Adds all memory behind a NumPy array or a torch tensor that views a part of it. Skips other objects."""
        owner, address, size = allocation_of(array)
        if address and size:
            self._owners[address] = weakref.ref(owner), size

    def size_from(self, address: int) -> int:
        """The bytes from an address to the end of the memory in which it lies; 0 for memory that is not registered."""
        for piece in self.memory():
            first = piece.__array_interface__["data"][0]
            if first <= address < first + piece.size:
                return first + piece.size - address
        return 0

    def owners(self, start: int, end: int) -> list[object]:
        """The objects that own memory in a range of addresses."""
        inside = [owner for address, (owner, size) in self._owners.items() if address < end and start < address + size]
        return [owner for reference in inside if (owner := reference()) is not None]

    def memory(self) -> "list[NDArray[np.uint8]]":
        """The memory that still exists, by address; pieces that overlap are one. They keep their owners alive."""
        import numpy as np

        alive = {address: (owner(), size) for address, (owner, size) in self._owners.items()}
        ranges: list[tuple[int, int, list[Any]]] = []
        for address, (owner, size) in sorted(alive.items(), key=lambda item: item[0]):
            end = address + size
            if owner is None:
                del self._owners[address]
            elif ranges and address < ranges[-1][1]:
                start, last, owners = ranges[-1]
                ranges[-1] = start, max(end, last), [*owners, owner]
            else:
                ranges.append((address, end, [owner]))
        pieces: list[Any] = []
        for start, end, owners in ranges:
            piece: Any = (ctypes.c_uint8 * (end - start)).from_address(start)
            piece.owners = owners
            pieces.append(np.frombuffer(piece, np.uint8))
        return pieces


def allocation_of(array: Any) -> tuple[Any, int, int]:
    """The owner of the memory that a NumPy array or a torch tensor views a part of, its address and its size in bytes;
    no owner and no bytes for another object.
    """
    if is_torch(array):
        owner = array.untyped_storage()
        return owner, owner.data_ptr(), owner.nbytes()
    if not (hasattr(array, "__array_interface__") and hasattr(array, "base")):
        return None, 0, 0
    while hasattr(array.base, "__array_interface__"):
        array = array.base
    return array, array.__array_interface__["data"][0], array.nbytes


@cache
def reachable() -> Reachable:
    """The memory that was registered in this process, as addresses are numbers of a process."""
    return Reachable()
