# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`tilefold.load_ptx`: the kernels of a PTX text, of any compiler, launched on the simulator."""

from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any

from xdsl.ir import Attribute

from tilefold.compiler.frontend.source import read_text
from tilefold.compiler.ptx.registers import type_of
from tilefold.compiler.ptx.syntax import Function
from tilefold.dialects.ptx.base import GLOBAL
from tilefold.driver.ptx_module import PtxModule, block_of, parameter_names, plain_symbol
from tilefold.runtime.arrays.array import array_of, is_array
from tilefold.runtime.arrays.host_tensors import HostTensors
from tilefold.runtime.engine import LaunchConfig, RunResult
from tilefold.runtime.errors import argument_error, dim3
from tilefold.runtime.options import RunOptions, launch_attributes
from tilefold.runtime.sim.sim_engine import SimEngine, SimProgram

if TYPE_CHECKING:
    from tilefold.cute.kernel import Size


@dataclass(frozen=True)
class PtxProgram:
    """A PTX module that has been read. `program["k"]` is a kernel, by its name or, of C++, by that of the function."""

    module: PtxModule

    @property
    def kernels(self) -> tuple[str, ...]:
        """The names of the kernels, in the order of the text."""
        return tuple(entry.name for entry in self.module.module.entries)

    def __getitem__(self, name: str) -> "PtxKernel":
        """A kernel. TilefoldError (E3107) unless exactly one has the name."""
        return PtxKernel(self.module, self.module.find(name))


@dataclass(frozen=True)
class PtxKernel:
    """A kernel of a PTX module; a call gives it its arguments, in order."""

    module: PtxModule
    function: Function

    def __call__(self, *args: Any) -> "PtxKernelCall":
        wanted = len(self.function.parameters)
        if len(args) != wanted:
            raise TypeError(f"kernel {self.function.name} takes {wanted} arguments, not {len(args)}")
        return PtxKernelCall(self, args)


@dataclass(frozen=True)
class PtxKernelCall:
    """A kernel with its arguments."""

    kernel: PtxKernel
    arguments: tuple[Any, ...]

    def launch(
        self,
        grid: "Size",
        block: "Size | None" = None,
        *,
        shared: int = 0,
        cluster: "Size | None" = None,
        cooperative: bool = False,
        seed: int = 0,
        resident: int = 1,
        numbers: bool = False,
        processes: int | None = None,
        races: bool = True,
        max_steps: int | None = None,
        max_memory: int | None = None,
    ) -> RunResult:
        """Runs the kernel on the simulator over a grid of blocks, with all its checks, and waits for it.

        An array, of NumPy or another library, is a pointer; numbers are passed as the parameter's type says. `block`
        is the size of a block, unless the kernel requires one (`.reqntid`); `shared` the bytes of shared memory for an
        array without a size (`.extern .shared`). The other options are those of a kernel of a file. Raises PtxError
        (E1009) for an instruction that is not supported, before anything runs, LaunchError for arguments and sizes that
        do not fit, and SimulationError for faults.
        """
        module, function = self.kernel.module, self.kernel.function
        size = block_of(function, None if block is None else dim3("block", block))
        attributes = launch_attributes(cluster, cooperative=cooperative)
        config = LaunchConfig(dim3("grid", grid), size, attributes=attributes)
        types, values, tensors = self._bound()
        engine = SimEngine.of(RunOptions(races, max_steps, max_memory, seed, resident, False, numbers, processes))
        with module.explaining():
            lowered, variables = module.lowered(function, types, size, shared)
            program = SimProgram(lowered, plain_symbol(function.name))
            result = engine.launch(program, config, {**values, **variables})
        tensors.finish()
        return result

    def _bound(self) -> tuple[tuple[Attribute, ...], Mapping[str, Any], HostTensors]:
        """The types of the parameters, the arguments by their names, and those that are arrays."""
        types: list[Attribute] = []
        values: dict[str, Any] = {}
        arrays: dict[str, Any] = {}
        parameters = zip(
            parameter_names(self.kernel.function), self.kernel.function.parameters, self.arguments, strict=True
        )
        for name, parameter, value in parameters:
            if is_array(value) and getattr(value, "shape", ()) != ():
                if parameter.size != 8 or parameter.type[0] == "f":
                    raise argument_error(name, f"is of type .{parameter.type}, which no array is passed as")
                array = arrays[name] = array_of(name, value)
                if array.device is not None:
                    raise argument_error(name, "is in the memory of a GPU", "pass an array in the host's memory")
                types.append(GLOBAL)
            elif parameter.type[0] == "b" and parameter.type == "b8":
                problem = f"is a structure of {parameter.size} bytes, which is not supported"
                raise argument_error(name, problem, "pass its members as parameters of their own")
            else:
                types.append(type_of(parameter.type))
                values[name] = value
        tensors = HostTensors(arrays)
        return tuple(types), {**values, **tensors.arguments}, tensors


def load_ptx(program: "str | PathLike[str]") -> PtxProgram:
    """Reads a PTX module: a path, or its text, which has several lines. Its kernels run on the simulator, with all its
    checks: `tilefold.load_ptx(text)["scale"](A, B, 3).launch(grid=4, block=128)`.

    Raises PtxError (E1008) for malformed text, TilefoldError for a file that cannot be read.
    """
    given = fspath(program)
    name, text = ("<ptx>", given) if "\n" in given else (given, read_text(given))
    return PtxProgram(PtxModule.read(text, name))
