# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arrays in the host's memory as arguments of an engine, from any library.

An engine copies an argument to memory of its own and back. So memory that two arguments share needs care: those that
begin at the same place are one storage, of which the engine makes one copy. The simulator also gives others that
overlap, as columns of one matrix do, one memory, a stretch. For a GPU they are copied here, as are arrays that are
read-only, and only their changed bytes are written back.
"""

import ctypes
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from ...base.element_types import ELEMENTS
from ...base.errors import Code
from ..engine import Argument, NumPyArray, NumPyType, TensorArgument, numpy_type
from ..errors import LaunchError
from .array import Array


class HostTensors:
    """The host's arrays of a launch, which must outlive it: `arguments` are the arrays that an engine reads and
    writes. Those that overlap are copied `apart` where the engine would not keep them together.
    """

    def __init__(self, arrays: Mapping[str, Array], *, apart: bool = False) -> None:
        places: dict[tuple[int, str, bool], _Place] = {}
        for name, array in arrays.items():
            place = places.setdefault((array.address, array.dtype, array.writable), _Place(array.address))
            place.arrays[name] = array
        self._apart: list[_Place] = []
        self.arguments: dict[str, TensorArgument] = {}
        for key, place in places.items():
            memory = place.memory(_dtype(key[1]))
            if not key[2] or (apart and any(place.overlaps(other) for other in places.values() if other is not place)):
                place.original = memory
                memory = place.storage = memory.copy()
                self._apart.append(place)
            for name, array in place.arrays.items():
                self.arguments[name] = TensorArgument(memory, array.layout, offset=array.place)

    def finish(self) -> None:
        """Writes back the changed bytes of the arguments that were copied, after the launch.

        LaunchError, and nothing of these is written, where the kernel has written to an array that is read-only, or to
        elements that two arguments share: each has had a copy of its own.
        """
        changes = [(place, place.changed()) for place in self._apart]
        for place, changed in changes:
            name, array = next(iter(place.arrays.items()))
            if changed.size and not array.writable:
                message = f"the kernel writes to argument '{name}', which is read-only"
                raise LaunchError(Code.RUN_ARGUMENT, message, "pass a writable array")
            for other in self._apart:
                if other is not place and other.holds(changed + place.address):
                    message = f"the kernel writes to elements that arguments '{name}' and '{min(other.arrays)}' share"
                    raise LaunchError(Code.RUN_ARGUMENT, message, "pass the same array twice, or a copy")
        for place, changed in changes:
            place.original.view(np.uint8)[changed] = place.storage.view(np.uint8)[changed]


def random_tensor(element: str, shape: tuple[int, ...], strides: tuple[int, ...]) -> TensorArgument:
    """An argument of this element type, shape and strides, which are not negative: floats drawn from N(0, 1), zeros of
    other types.
    """
    array = Array(0, element, shape, strides, None)
    storage = np.zeros(array.span, _dtype(element))
    if ELEMENTS[element].kind == "float":
        storage[...] = np.random.default_rng(0).standard_normal(array.span, np.float32).astype(storage.dtype)
    return TensorArgument(storage, array.layout)


def _dtype(element: str) -> NumPyType:
    """The element type in which the engines take storage; a bool is a byte, and so are elements that share one."""
    is_byte = element == "i1" or ELEMENTS[element].memory_bits < 8
    return np.dtype(np.uint8) if is_byte else numpy_type(ELEMENTS[element])


@dataclass
class _Place:
    """The arrays of one element type that begin at an address. Where they are copied, `original` is their memory and
    `storage` the copy.
    """

    address: int
    arrays: dict[str, Array] = field(default_factory=lambda: {})
    original: NumPyArray = field(default_factory=lambda: np.zeros(0))
    storage: NumPyArray = field(default_factory=lambda: np.zeros(0))

    @property
    def end(self) -> int:
        """The address behind the last element."""
        return self.address + max(array.bytes for array in self.arrays.values())

    def memory(self, dtype: NumPyType) -> NumPyArray:
        """The memory itself, in the element type of the IR."""
        memory: Any = (ctypes.c_uint8 * (self.end - self.address)).from_address(self.address)
        return np.frombuffer(memory, dtype)

    def overlaps(self, other: "_Place") -> bool:
        """Whether two ranges have addresses in common."""
        return self.address < other.end and other.address < self.end

    def changed(self) -> NDArray[np.intp]:
        """The bytes that the launch has changed, counted from the address."""
        return np.flatnonzero(self.original.view(np.uint8) != self.storage.view(np.uint8))

    def holds(self, addresses: NDArray[np.intp]) -> bool:
        """Whether one of the addresses is that of an element, not between elements."""
        inside = addresses[(addresses >= self.address) & (addresses < self.end)] - self.address
        if not inside.size:
            return False
        held = np.zeros(self.end - self.address, np.bool_)
        for array in self.arrays.values():
            steps = (*(step * array.itemsize for step in array.strides), 1)
            as_strided(held, (*array.shape, array.itemsize), steps)[...] = True
        return bool(held[inside].any())


@dataclass(frozen=True, slots=True)
class Stretch:
    """Bytes that arrays share, from the first address of one of them to the last of another."""

    start: int
    size: int


def stretches(storages: Iterable[NumPyArray]) -> Mapping[int, Stretch]:
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


@dataclass(frozen=True, slots=True)
class Multicast:
    """Multicast memory: the range of the host's addresses that names it, and the memory of each device, in bytes."""

    memory: NumPyArray
    parts: tuple[NumPyArray, ...]


@dataclass(frozen=True, slots=True)
class Placing:
    """The stretch of memory of each array, by its identity, and the offsets of those that are `placed` in the arena:
    arrays that share memory do so there, too.
    """

    where: Mapping[int, Stretch]
    placed: dict[Stretch, int]

    @classmethod
    def of(cls, arguments: Iterable[Mapping[str, Argument]], multicasts: Sequence[Multicast] = ()) -> "Placing":
        """That of these arguments, of which nothing is placed yet."""
        given = [value.storage for args in arguments for value in args.values() if isinstance(value, TensorArgument)]
        kept = [memory for multicast in multicasts for memory in (multicast.memory, *multicast.parts)]
        return cls(stretches([*given, *kept]), {})


def copied(arguments: Mapping[str, Argument]) -> dict[int, NumPyArray]:
    """Copies of the arrays of a launch, by the identity of each; copies of arrays that share memory share it, too."""
    storages = [value.storage for value in arguments.values() if isinstance(value, TensorArgument)]
    where = stretches(storages)
    memory: dict[Stretch, NDArray[np.uint8]] = {}
    copies: dict[int, NumPyArray] = {}
    for storage in storages:
        stretch = where[id(storage)]
        if stretch not in memory:
            memory[stretch] = np.empty(stretch.size, np.uint8)
        at = storage.ctypes.data - stretch.start
        copy = memory[stretch][at : at + storage.nbytes].view(storage.dtype)
        copy[...] = storage
        copies[id(storage)] = copy
    return copies
