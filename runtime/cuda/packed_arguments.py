# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arguments by name, packed as cuLaunchKernel wants them: an array of the addresses of their values."""

import ctypes
from collections.abc import Mapping
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np

from ...base.errors import Code, LayoutError
from ...layout.algebra.core import Layout, LayoutLike
from ...layout.algebra.scalars import scalars_of
from ..compiled.artifact import Artifact, Kind, Parameter
from ..engine import Argument, TensorArgument
from ..errors import LaunchError, argument_error
from .driver import Driver
from .memory import CudaArray, DeviceBuffer, DlpackArray, device_tensor

CudaArgument: TypeAlias = Argument | CudaArray | DlpackArray
"""What a kernel is launched on: storage that is copied, an array in device memory that is passed as it is, or
a scalar."""

_FLOATS: dict[Kind, Any] = {
    Kind.F16: np.float16,
    Kind.BF16: ml_dtypes.bfloat16,
    Kind.F32: np.float32,
    Kind.F64: np.float64,
}


class PackedArguments:
    """The arguments of one launch: `addresses` for the driver, and the memory that they need until it has finished."""

    def __init__(self, driver: Driver, artifact: Artifact, args: Mapping[str, CudaArgument]) -> None:
        """Copies storage to the device and converts scalars. LaunchError for arguments that do not fit the kernel."""
        _check_names(artifact, args)
        self._copies: dict[int, tuple[DeviceBuffer, TensorArgument]] = {}  # by storage, which arguments may share
        self.values: list[Any] = []
        for parameter in artifact.parameters:
            value = args[parameter.name]
            if parameter.kind is Kind.POINTER:
                address, layout = self._tensor(driver, parameter, value)
                if address % parameter.align:
                    problem = f"is at address {address:#x}, which is not a multiple of {parameter.align} bytes"
                    raise argument_error(parameter.name, f"{problem} as the kernel requires")
                self.values.append(ctypes.c_uint64(address))
                if parameter.layout is not None:
                    self.values += _scalars(parameter, parameter.layout, layout)
            else:
                self.values.append(_scalar(parameter, value))
        addresses = (ctypes.addressof(value) for value in self.values)
        self.addresses = (ctypes.c_void_p * max(len(self.values), 1))(*addresses)

    def read_back(self) -> None:
        """Copies the results into the storage that the arguments came from."""
        for buffer, argument in self._copies.values():
            buffer.read(argument.storage)

    def _tensor(self, driver: Driver, parameter: Parameter, value: CudaArgument) -> "tuple[int, LayoutLike | None]":
        """The address of a tensor, and its layout as far as the value says one."""
        if isinstance(value, TensorArgument):
            if id(value.storage) not in self._copies:
                buffer = DeviceBuffer(driver, value.storage.nbytes)
                buffer.write(value.storage)
                self._copies[id(value.storage)] = buffer, value
            return self._copies[id(value.storage)][0].address, value.layout
        if isinstance(value, int | float | np.generic):
            raise argument_error(
                parameter.name, f"is a tensor, but a {type(value).__name__} was given", "pass an array"
            )
        return device_tensor(parameter.name, value, driver.ordinal)


def _scalars(parameter: Parameter, layout: Layout, given: "LayoutLike | None") -> list[Any]:
    """The values of the `?` of a parameter's layout, in their widths."""
    if given is None:
        raise argument_error(parameter.name, "needs the tensor's layout", "pass a TensorArgument with it")
    try:
        values = scalars_of(layout, given)
    except LayoutError as error:
        raise argument_error(parameter.name, f"does not fit: {error.message}", error.hint) from None
    types = [ctypes.c_int64 if unknown.width == 64 else ctypes.c_int32 for unknown in parameter.unknowns]
    return [type(value) for type, value in zip(types, values, strict=True)]


def _check_names(artifact: Artifact, args: Mapping[str, CudaArgument]) -> None:
    missing = [name for name in artifact.names if name not in args]
    unknown = [name for name in args if name not in artifact.names]
    if missing or unknown:
        what = f"argument '{missing[0]}' is missing" if missing else f"there is no argument '{unknown[0]}'"
        raise LaunchError(
            Code.RUN_ARGUMENT,
            f"kernel '{artifact.kernel}': {what}",
            f"its arguments are: {', '.join(artifact.names) or 'none'}",
        )


def _scalar(parameter: Parameter, value: CudaArgument) -> Any:
    """The value in the parameter's type, in memory of its own."""
    kind = parameter.kind
    if kind in _FLOATS:
        if not isinstance(value, int | float | np.generic):
            raise _unfit(parameter, value)
        with np.errstate(over="ignore"):
            data = np.array(float(value), _FLOATS[kind]).tobytes()
    else:
        bits = int(kind.value.removeprefix("i"))
        number = _integer(value)
        if number is None or not -(1 << bits - 1) <= number < 1 << bits:
            raise _unfit(parameter, value)
        size = max(bits // 8, 1)
        data = (number & ((1 << size * 8) - 1)).to_bytes(size, "little")
    return ctypes.create_string_buffer(data, len(data))


def _integer(value: CudaArgument) -> int | None:
    if isinstance(value, np.generic):
        return int(value) if value.dtype.kind in "biu" else None
    return value if isinstance(value, int) else None


def _unfit(parameter: Parameter, value: CudaArgument) -> LaunchError:
    problem = f"is of type {parameter.kind.value}, but {str(value)[:40]!r} was given"
    return argument_error(parameter.name, problem, "give a number that the type can hold")
