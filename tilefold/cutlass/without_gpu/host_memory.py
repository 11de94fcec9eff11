# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Memory that programs allocate by CUDA's runtime or driver, on a machine without a GPU: it is the host's.

The functions are those of cuda-python: each returns a status and its results, addresses are integers.
"""

import ctypes
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from inspect import signature
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tilefold.runtime.accesses import READ, WRITTEN, Piece
from tilefold.runtime.arrays.reachable import reachable

from ..replacements import Replacements
from .work import Copy, Pieces, Streams

TorchTensor: TypeAlias = Any
"""A tensor of torch: type checkers know its class only where torch is installed."""
ALIGN = 256
"""The alignment of allocated memory in bytes (CUDA C++ Programming Guide, Size and Alignment Requirement)."""


@dataclass(frozen=True, slots=True)
class HostMemory:
    """Allocated memory by its address. The methods return whether they could do it."""

    pieces: dict[int, tuple[object, NDArray[np.uint8]]] = field(default_factory=lambda: {})

    def allocate(self, size: int) -> int:
        """The address of new memory, which kernels may reach; 0 for no bytes."""
        if not size:
            return 0
        room = ctypes.create_string_buffer(size + ALIGN)
        address = -(-ctypes.addressof(room) // ALIGN) * ALIGN
        memory: Any = (ctypes.c_uint8 * size).from_address(address)
        array = np.frombuffer(memory, np.uint8)
        reachable().add(array)
        self.pieces[address] = room, array
        return address

    def free(self, address: Any) -> bool:
        """Frees memory by its address; nothing for 0."""
        return not int(address) or self.pieces.pop(int(address), None) is not None

    def freed(self, address: Any) -> Pieces:
        """The memory that `free` takes away, and that it keeps: other streams may no longer access it."""
        room, array = self.pieces.get(int(address), (None, np.zeros(0, np.uint8)))

        def pieces() -> list[Piece]:
            return [] if room is None else [_piece("memory", address, array.nbytes, WRITTEN)]

        return pieces

    def fill(self, place: object, value: int, size: int) -> bool:
        """Sets bytes of memory that is known."""
        address, known = _room(place)
        if known is None or not 0 <= size <= known:
            return False
        ctypes.memset(address, value & 0xFF, size)
        return True

    def filled(self, place: object, value: int, size: int) -> Pieces:
        """The memory that `fill` sets."""
        return lambda: [_piece("memory", place, size, WRITTEN)]

    def copied(self, target: object, source: object, size: int) -> Pieces:
        """The memory that `copy` accesses."""
        return lambda: [_piece("the target", target, size, WRITTEN), _piece("the source", source, size, READ)]

    def copy(self, target: object, source: object, size: int) -> bool:
        """Copies bytes; each of the two is an address or an object with a buffer."""
        (to, room), (start, there) = _room(target), _room(source)
        if not to or not start or size < 0 or any(known is not None and size > known for known in (room, there)):
            return False
        ctypes.memmove(to, start, size)
        return True


def _room(place: Any) -> tuple[int, int | None]:
    """The address that a function of CUDA is given, as a number or as an object with a buffer, and how many bytes are
    there; None where that is not known.
    """
    try:
        buffer = np.frombuffer(place, np.uint8)
    except TypeError:
        address = int(place)
        return address, reachable().size_from(address) or None
    return buffer.ctypes.data, buffer.nbytes


def _piece(name: str, place: object, size: int, flag: int) -> Piece:
    return Piece(name, _room(place)[0], np.full(size, flag, np.uint8))


def memory_on_host(streams: Streams, replaced: Replacements) -> None:
    """Makes cuda-python, if it is installed, allocate, set, copy and free memory of the host. Statuses are
    `cudaSuccess` and `cudaErrorInvalidValue`.
    """
    if find_spec("cuda") is None:
        return
    runtime, driver = import_module("cuda.bindings.runtime"), import_module("cuda.bindings.driver")
    memory = HostMemory()
    free, fill = (memory.free, memory.freed), (memory.fill, memory.filled)
    copy = memory.copy, memory.copied
    error, result = runtime.cudaError_t, driver.CUresult
    of_runtime = {
        "cudaFree": free, "cudaFreeAsync": free, "cudaMemset": fill, "cudaMemsetAsync": fill, "cudaMemcpy": copy,
        "cudaMemcpyAsync": copy,
    }  # fmt: skip
    copies = ("cuMemcpy", "cuMemcpyHtoD", "cuMemcpyDtoH", "cuMemcpyDtoD")
    of_driver = {
        "cuMemFree": free, "cuMemFreeAsync": free, "cuMemsetD8": fill, "cuMemsetD8Async": fill,
        **{f"{name}{kind}": copy for name in copies for kind in ("", "Async")},
    }  # fmt: skip
    good, bad = error.cudaSuccess, error.cudaErrorInvalidValue
    allocate = _allocating(memory, good, int)
    replaced.set(runtime, cudaMalloc=allocate, cudaMallocAsync=allocate)
    replaced.set(runtime, **{name: _answering(streams, name, *work, good, bad) for name, work in of_runtime.items()})
    good, bad = result.CUDA_SUCCESS, result.CUDA_ERROR_INVALID_VALUE
    allocate = _allocating(memory, good, driver.CUdeviceptr)
    replaced.set(driver, cuMemAlloc=allocate, cuMemAllocAsync=allocate)
    replaced.set(driver, **{name: _answering(streams, name, *work, good, bad) for name, work in of_driver.items()})


def _allocating(memory: HostMemory, success: object, kind: Callable[[int], object]) -> Callable[..., tuple[Any, Any]]:
    def call(size: int, *_: object) -> tuple[Any, Any]:
        return success, kind(memory.allocate(size))

    return call


def _answering(
    streams: Streams,
    name: str,
    work: Callable[..., bool],
    accessed: Callable[..., Pieces],
    success: object,
    failure: object,
) -> Callable[..., tuple[Any]]:
    """A function of CUDA that does some work with its first arguments. An asynchronous one does it in the stream that
    is its last argument, where kept work counts as done. Else the program waits for it, and to free memory for all.
    """
    count, waits = len(signature(work).parameters), not name.endswith("Async")

    def call(*args: Any) -> tuple[Any]:
        given = args[:count]
        stream = args[-1] if len(args) > count and not waits else 0
        if waits:
            streams.synchronize(None if "Free" in name else 0)
        done = streams.do(partial(work, *given), stream, Copy(name, accessed(*given)))
        if waits:
            streams.synchronize(0)
        return (failure if done is False else success,)

    return call
