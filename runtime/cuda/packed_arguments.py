# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arguments by name, packed by the kinds of the parameters; device memory, and arrays that other libraries keep
there.
"""

import weakref
from collections.abc import Mapping
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np

from ...base.errors import Code, LayoutError
from ...base.parameters import Placed
from ...layout.algebra.core import Layout, LayoutLike
from ...layout.algebra.scalars import scalars_of
from ..arrays.array import array_of
from ..compiled.artifact import Artifact, Parameter
from ..engine import Argument, NumPyArray, TensorArgument, pack_argument
from ..errors import LaunchError, argument_error
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


CudaArgument: TypeAlias = Argument | CudaArray | DlpackArray
"""An argument of a launch: storage that is copied, an array in device memory that is passed as it is, or
a scalar."""


class PackedArguments:
    """The arguments of one launch: the bytes of their `values`, and the memory that they need until it has finished."""

    def __init__(self, driver: Driver, artifact: Artifact, args: Mapping[str, CudaArgument]) -> None:
        """Copies storage to the device and converts scalars. LaunchError for arguments that do not fit the kernel."""
        _check_names(artifact, args)
        self._copies: dict[int, tuple[DeviceBuffer, TensorArgument]] = {}  # by storage, which arguments may share
        self.values: list[bytes] = []
        for parameter in artifact.parameters:
            value, kind = args[parameter.name], parameter.kind
            given = self._placed(driver, parameter, value) if kind.is_tensor else value
            self.values.append(pack_argument(parameter.name, kind, given))
            if isinstance(given, Placed) and parameter.layout is not None:
                self.values += _scalars(parameter, parameter.layout, given.layout)

    def read_back(self) -> None:
        """Copies the results into the storage that the arguments came from."""
        for buffer, argument in self._copies.values():
            buffer.read(argument.storage)

    def _placed(self, driver: Driver, parameter: Parameter, value: CudaArgument) -> Placed:
        """A tensor where it is on the device, at an address that the kernel accepts."""
        placed = self._tensor(driver, parameter, value)
        if placed.address % parameter.align:
            problem = f"is at address {placed.address:#x}, which is not a multiple of {parameter.align} bytes"
            raise argument_error(parameter.name, f"{problem}, as the kernel requires")
        return placed

    def _tensor(self, driver: Driver, parameter: Parameter, value: CudaArgument) -> Placed:
        if isinstance(value, TensorArgument):
            if id(value.storage) not in self._copies:
                buffer = DeviceBuffer(driver, value.storage.nbytes)
                buffer.write(value.storage)
                self._copies[id(value.storage)] = buffer, value
            return Placed(self._copies[id(value.storage)][0].address, value.layout)
        if isinstance(value, int | float | np.generic):
            raise argument_error(parameter.name, f"is a tensor, not a {type(value).__name__}", "pass an array")
        return Placed(*make_device_tensor(parameter.name, value, driver.ordinal))


def _scalars(parameter: Parameter, layout: Layout, given: "LayoutLike | None") -> list[bytes]:
    """The values of the `?` of a parameter's layout, in their widths."""
    if given is None:
        raise argument_error(parameter.name, "needs the tensor's layout", "pass a TensorArgument with it")
    try:
        values = scalars_of(layout, given)
    except LayoutError as error:
        raise argument_error(parameter.name, f"does not fit: {error.message}", error.hint) from None
    return [kind.pack(value) for kind, value in zip(parameter.kinds[1:], values, strict=True)]


def _check_names(artifact: Artifact, args: Mapping[str, CudaArgument]) -> None:
    missing = [name for name in artifact.names if name not in args]
    unknown = [name for name in args if name not in artifact.names]
    if missing or unknown:
        problem = f"argument '{missing[0]}' is missing" if missing else f"unknown argument '{unknown[0]}'"
        raise LaunchError(
            Code.RUN_ARGUMENT,
            f"kernel '{artifact.kernel}': {problem}",
            f"its arguments are: {', '.join(artifact.names) or 'none'}",
        )
