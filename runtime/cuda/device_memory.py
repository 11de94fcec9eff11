# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Device memory, and arrays that other libraries already keep there."""

import weakref
from typing import Any, Protocol, runtime_checkable

from ...layout.algebra.core import Layout
from ..arrays.array import array_of
from ..engine import NumPyArray
from ..errors import argument_error
from .driver import Driver


@runtime_checkable
class CudaArray(Protocol):
    """An array in device memory by `__cuda_array_interface__` (Numba's specification: CuPy, torch and others
    have it)."""

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]: ...


@runtime_checkable
class DlpackArray(Protocol):
    """An array by DLPack (torch, JAX, CuPy and others have it)."""

    def __dlpack__(self, *, stream: object = None) -> Any: ...

    def __dlpack_device__(self) -> tuple[int, int]: ...


class DeviceBuffer:
    """Device memory of its own for one array, freed when the object is."""

    def __init__(self, driver: Driver, size: int) -> None:
        """Allocates `size` bytes. CudaError if there is no such amount."""
        self._driver = driver
        self._pointer: Any = driver.call("cuMemAlloc", max(size, 1), doing=f"allocating {size} bytes")
        self.address = int(self._pointer)
        weakref.finalize(self, driver.api.cuMemFree, self._pointer).atexit = False  # the driver frees it then

    def write(self, array: NumPyArray) -> None:
        """Copies a contiguous array to the device."""
        if array.nbytes:
            self._driver.call("cuMemcpyHtoD", self._pointer, array.ctypes.data, array.nbytes)

    def read(self, array: NumPyArray) -> None:
        """Copies from the device into a contiguous array, once the kernels before have finished."""
        if array.nbytes:
            self._driver.call("cuMemcpyDtoH", array.ctypes.data, self._pointer, array.nbytes)


def make_device_tensor(name: str, array: CudaArray | DlpackArray, ordinal: int) -> tuple[int, Layout]:
    """The address and the layout of an array that is in device memory already. LaunchError (E3106) where it is not, or
    on another device.
    """
    on_device = array_of(name, array)
    if on_device.device is None:
        problem = "is an array that is not in the GPU's memory"
        raise argument_error(name, problem, "move it there, or pass a NumPy array, which is copied")
    if on_device.device != ordinal:
        problem = f"is on device {on_device.device}, the kernel runs on device {ordinal}"
        raise argument_error(name, problem, "move it there, or launch on its device")
    return on_device.address, on_device.layout
