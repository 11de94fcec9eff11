# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs for several devices, which share memory, on the simulator.

`run_on_devices(n, program)` calls `program(rank)` for each of `n` simulated devices of this process. Kernels that the
programs launch run at the same time; races between devices are found, and waits that never end. Within it,

- `symmetric(shape, dtype)` is an array that each device has, and `peers(array)` those of all devices, by rank;
- `multicast(array)` stands for all of them: only `multimem` instructions take its addresses;
- `meet(name, value)` waits for all devices and returns their values, by rank.
"""

import ctypes
from collections.abc import Callable
from itertools import chain
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from tilefold.base.errors import Code, TilefoldError
from tilefold.driver.devices import devices_of_process
from tilefold.driver.world import World
from tilefold.runtime.arrays.host_tensors import Multicast
from tilefold.runtime.engine import NumPyArray, NumPyType

T = TypeVar("T")
ALIGN = 256
"""The alignment of symmetric memory in bytes, that of an allocation on a GPU."""


def run_on_devices(count: int, program: Callable[[int], T], *, check: bool = False) -> list[T]:
    """The results of `program(rank)` on each of some simulated devices, by rank. Raises the first error, and
    LaunchError (E3105) where the devices wait for each other in vain.

    With `check`, launches also run with other values that atomic loads may find, such as outdated ones (PTX ISA, Memory
    Consistency Model). That finds races which the values of flags hide by chance. It takes several times as long.
    """
    devices = devices_of_process()
    before = devices.world
    if before is not None and not before.is_alone:
        raise TilefoldError(Code.BAD_ARGUMENT, "devices run in devices", "call it outside the programs of devices")
    devices.world = World(count, check)
    try:
        return devices.world.run(program)
    finally:
        devices.world = before


def world() -> World:
    """The devices of this process. TilefoldError (E0213) outside `run_on_devices`."""
    found = devices_of_process().world
    if found is None or found.is_alone:
        raise TilefoldError(Code.BAD_ARGUMENT, "there is one device", "call it in a program of run_on_devices")
    return found


def meet(name: str = "a barrier", value: object = None) -> list[Any]:
    """Waits for the programs of all devices, each of which must meet by the same name; their values, by rank."""
    return world().meet(name, value)


def symmetric(shape: int | tuple[int, ...], dtype: Any = np.float32) -> NumPyArray:
    """A new array of zeros in the memory of this device, which `peers` knows. All devices must call it together."""
    array = _new(shape, np.dtype(dtype))
    known = meet("the allocation of symmetric memory", array)
    world().symmetric[_bytes(array).ctypes.data] = known
    return array


def peers(array: NumPyArray) -> list[NumPyArray]:
    """The arrays of all devices, by rank, that were allocated with a symmetric one. TilefoldError (E0213) for another
    array.
    """
    known = world().symmetric.get(array.ctypes.data)
    if known is None:
        raise TilefoldError(
            Code.BAD_ARGUMENT, "this array is not in symmetric memory", "allocate it by symmetric(shape, dtype)"
        )
    return known


def multicast(array: NumPyArray) -> NumPyArray:
    """An array whose addresses stand for those of a symmetric array on all devices. It has no elements of its own."""
    place = _new(array.shape, array.dtype)
    world().multicasts.append(Multicast(_bytes(place), tuple(_bytes(peer) for peer in peers(array))))
    return place


def memory_at(address: int) -> NDArray[np.uint8]:
    """The bytes of the symmetric array of a device, or of the multicast one, that begins at an address. TilefoldError
    (E0213) for another address.
    """
    of_devices = (array for arrays in world().symmetric.values() for array in arrays)
    of_all = (multicast.memory for multicast in world().multicasts)
    for array in chain(of_devices, of_all):
        if array.ctypes.data == address:
            return _bytes(array)
    raise TilefoldError(
        Code.BAD_ARGUMENT, "no array in symmetric memory begins there", "keep the tensor whose address it is"
    )


def _new(shape: int | tuple[int, ...], dtype: NumPyType) -> NumPyArray:
    size = int(np.prod(shape)) * dtype.itemsize
    room = np.zeros(size + ALIGN, np.uint8)
    start = -room.ctypes.data % ALIGN
    return room[start : start + size].view(dtype).reshape(shape)


def _bytes(array: NumPyArray) -> NDArray[np.uint8]:
    memory: Any = (ctypes.c_uint8 * array.nbytes).from_address(array.ctypes.data)
    memory.owner = array
    return np.frombuffer(memory, np.uint8)
