# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels of `.cute` files, launched on arrays: `program.kernel("axpy")(X, Y, 2.5).launch(grid=64)`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from tilefold.base.errors import Code, LayoutError
from tilefold.dialects.cute.values import unknowns, with_scalars
from tilefold.dialects.kernel import KernelOp
from tilefold.dialects.tile import TensorType
from tilefold.driver.devices import executable
from tilefold.driver.filled_arguments import unpacked
from tilefold.driver.lowering import Program
from tilefold.layout.algebra.core import Layout
from tilefold.layout.algebra.scalars import scalars_of
from tilefold.runtime.arrays.array import Array, array_of, is_array
from tilefold.runtime.arrays.storage import mode_sizes, pack, read_logical_array, read_logical_numbers, storage_of
from tilefold.runtime.engine import LaunchConfig, RunResult, TensorArgument
from tilefold.runtime.errors import argument_error
from tilefold.runtime.options import SimKeywords, SimOptions, dim3, launch_attributes
from tilefold.runtime.sim.values import element_kind

if TYPE_CHECKING:
    from tilefold.cute.kernel import Size


@dataclass(frozen=True)
class FileKernel:
    """A kernel of a program; a call gives it its arguments, by position or by name."""

    program: Program
    symbol: str

    def __call__(self, *args: Any, **kwargs: Any) -> "FileKernelCall":
        names = self.names
        given = dict(zip(names, args, strict=False))
        twice = [name for name in kwargs if name in given]
        unknown = [name for name in kwargs if name not in names]
        missing = [name for name in names if name not in given and name not in kwargs]
        if len(args) > len(names) or twice or unknown or missing:
            raise TypeError(f"kernel {self.symbol} takes each of its arguments once: {', '.join(names)}")
        return FileKernelCall(self, {**given, **kwargs})

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the arguments, in order."""
        return tuple(parameter.name for parameter in self.operation.parameters())

    @property
    def operation(self) -> KernelOp:
        """The kernel as the file defines it."""
        return self.program.kernels[self.symbol]


@dataclass(frozen=True)
class FileKernelCall:
    """A kernel with its arguments by name."""

    kernel: FileKernel
    arguments: Mapping[str, object]

    def launch(
        self,
        grid: "Size",
        *,
        device: str = "auto",
        stage: str | None = None,
        stream: int = 0,
        cluster: "Size | None" = None,
        **options: Unpack[SimKeywords],
    ) -> RunResult:
        """Runs the kernel over a grid of blocks, of the size that it says, and waits for it.

        A tensor is an array of the tensor's logical shape: of NumPy or of another library. An array of the host may
        have any strides, since its elements are copied to where the kernel's layout has them and back; one on the GPU
        is passed as it is. `device` is "auto", "sim" or "cuda"; `stage` where the simulator runs; `stream` the handle
        of a CUDA stream; `cluster` the size of a cluster in blocks. `seed`, `races`, `max_steps`, `max_memory`
        (MiB), `resident`, `exact`, `numbers`, `numerics` and `processes` are options of the simulator. Raises
        LaunchError for arguments that do not fit, SimulationError and CudaError for faults while it runs.
        """
        program, operation = self.kernel.program, self.kernel.operation
        config = LaunchConfig(dim3("grid", grid), operation.block, stream, launch_attributes(cluster))
        simulation = SimOptions.of(options)
        tensors = program.tensors(operation.sym_name.data)
        given = _Arguments()
        for name, value in self.arguments.items():
            given.add(name, value, tensors.get(name))
        result = executable(program, self.kernel.symbol, device, stage, simulation).launch(config, given.passed)
        given.write_back()
        return replace(result, exact=read_logical_numbers(result.exact, given.passed)) if simulation.exact else result


@dataclass
class _Arguments:
    """The arguments of an engine, and the arrays of the host for its results."""

    passed: dict[str, object] = field(default_factory=dict[str, Any])
    _copied: "list[tuple[Any, TensorType, TensorArgument]]" = field(default_factory=lambda: [])

    def add(self, name: str, value: object, type: TensorType | None) -> None:
        """Takes an argument. LaunchError (E3106) for an array that does not fit its tensor."""
        if not is_array(value) or type is None:
            self.passed[name] = value
            return
        array = array_of(name, value)
        if array.device is not None:
            _scalars(name, type, array)
            self.passed[name] = value
            return
        same = next((kept for other, held, kept in self._copied if other is value and held == type), None)
        if same is None:
            same = _store(name, np.asarray(value), type)
            self._copied.append((value, type, same))
        self.passed[name] = same

    def write_back(self) -> None:
        """Copies the results into the arrays that the arguments came from, but into those that are read-only."""
        for value, type, argument in self._copied:
            array = np.asarray(value)
            if array.flags.writeable:
                assert argument.layout is not None
                array[...] = read_logical_array(unpacked(argument.storage, type), argument.layout)


def _store(name: str, array: Any, type: TensorType) -> TensorArgument:
    """The elements of an array at the places of a tensor's layout."""
    kind = element_kind(type.element_type)
    if kind is None or (array.dtype != kind.dtype and (kind.is_float or array.dtype.itemsize != kind.dtype.itemsize)):
        wanted = "" if kind is None else f"convert it: .astype({kind.dtype})"
        raise argument_error(name, f"has elements of {type.element_type}, but the array has {array.dtype}", wanted)
    static = type.layout.data
    if unknowns(static):
        static = with_scalars(static, _scalars(name, type, array_of(name, array)))
    if array.shape != mode_sizes(static):
        raise argument_error(name, f"has shape {mode_sizes(static)}, but the array has {array.shape}", "pass all of it")
    storage = storage_of(array, static)
    return TensorArgument(pack(storage, type.element_bits) if type.is_packed else storage, static)


def _scalars(name: str, type: TensorType, array: Array) -> Sequence[int]:
    """The values of the `?` of a tensor's layout for an array. LaunchError (E3106) where its layout is another one."""
    layout = type.layout.data
    try:
        if not isinstance(layout, Layout):
            raise LayoutError(Code.RUN_ARGUMENT, f"its layout is swizzled: {layout}", "pass an array of the host")
        return scalars_of(layout, array.layout)
    except LayoutError as error:
        raise argument_error(name, f"does not fit: {error.message}", error.hint) from None
