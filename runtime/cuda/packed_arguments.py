# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arguments by name, packed by the kinds of the parameters."""

from collections.abc import Mapping
from typing import TypeAlias

import numpy as np

from ...base.errors import Code, LayoutError
from ...base.parameters import Placed
from ...layout.algebra.core import Layout, LayoutLike
from ...layout.algebra.scalars import scalars_of
from ..compiled.artifact import Artifact, Parameter
from ..engine import Argument, TensorArgument, pack_argument
from ..errors import LaunchError, argument_error
from .device_memory import CudaArray, DeviceBuffer, DlpackArray, make_device_tensor
from .driver import Driver

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
