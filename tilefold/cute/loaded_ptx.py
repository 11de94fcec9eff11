# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`tilefold.load_ptx`: the kernels of a PTX text, of any compiler, launched and checked on the simulator; and a call as
options of `tilefold check`, by which another process reproduces it.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
from numpy.typing import NDArray
from xdsl.ir import Attribute

from tilefold.base.element_types import ELEMENT_TYPES
from tilefold.base.errors import Code, TilefoldError
from tilefold.compiler.frontend.source import read_text
from tilefold.compiler.ptx.registers import type_of
from tilefold.compiler.ptx.syntax import Function
from tilefold.cute.tensor_map_argument import TensorMapArgument
from tilefold.dialects.ptx.base import GLOBAL
from tilefold.driver.devices import devices_of_process
from tilefold.driver.faults import Report
from tilefold.driver.gaps import gap_of
from tilefold.driver.lowering import PTX_STAGE
from tilefold.driver.ptx_module import PtxModule, block_of, parameter_names, plain_name, plain_symbol
from tilefold.driver.world import DeviceEngine
from tilefold.runtime.arrays.array import array_of, is_array
from tilefold.runtime.arrays.host_tensors import HostTensors, copied
from tilefold.runtime.engine import Argument, LaunchConfig, NumPyArray, RunResult, TensorArgument, numpy_type
from tilefold.runtime.errors import LaunchError, argument_error
from tilefold.runtime.options import CheckKeywords, SimOptions, dim3, launch_attributes
from tilefold.runtime.sim.diagnosis import DiagnosedLaunch
from tilefold.runtime.sim.preparation import SimProgram
from tilefold.runtime.sim.sim_engine import SimEngine, discard
from tilefold.tools.checking.check import Examination, examined, reported
from tilefold.tools.reproduction.folder import simulation_options
from tilefold.tools.reproduction.replay import Repeated, replay_of

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
        function = self.module.find(name)
        return PtxKernel(self.module, function, tuple(parameter_names(function)))


@dataclass(frozen=True)
class PtxKernel:
    """A kernel of a PTX module, with the names of its parameters; a call gives it its arguments, in order."""

    module: PtxModule
    function: Function
    names: tuple[str, ...]

    def __call__(self, *args: Any) -> "PtxKernelCall":
        wanted = len(self.function.parameters)
        if len(args) != wanted:
            raise TypeError(f"kernel {self.function.name} takes {wanted} arguments, not {len(args)}")
        return PtxKernelCall(self, args)


@dataclass(frozen=True)
class _Ready:
    """A launch that can begin: the program, its sizes, the arguments by name, and the arrays among them."""

    program: SimProgram
    config: LaunchConfig
    values: Mapping[str, Argument]
    tensors: HostTensors


@dataclass(frozen=True)
class PtxKernelCall:
    """A kernel with its arguments.

    An array, of NumPy or another library, is a pointer; numbers are passed as the parameter's type says. The bytes of a
    structure are `bytes`, an instance of `ctypes.Structure`, or an element of a structured NumPy array; an address in
    it is that of an array on the host which `memory` lists.
    """

    kernel: PtxKernel
    arguments: tuple[Any, ...]

    def launch(
        self,
        grid: "Size",
        block: "Size | None" = None,
        *,
        shared: int = 0,
        memory: Sequence[NumPyArray] = (),
        cluster: "Size | None" = None,
        cooperative: bool = False,
        races: bool = True,
        **options: Unpack[CheckKeywords],
    ) -> RunResult:
        """Runs the kernel on the simulator over a grid of blocks, with all its checks, and waits for it.

        `block` is the size of a block, unless the kernel requires one (`.reqntid`); `shared` the bytes of shared memory
        for an array without a size (`.extern .shared`); `memory` are arrays whose addresses the kernel finds elsewhere
        than in its arguments. In a program of several devices (tilefold.cute.several_devices), the kernel runs
        together with those of the others. The other options are those of a kernel of a file. Raises PtxError (E1009)
        for an instruction that is not supported, before anything runs, LaunchError for arguments and sizes that do not
        fit, and SimulationError for faults.
        """
        ready = self._ready(grid, block, shared, cluster, cooperative=cooperative)
        engine = self._engine(replace(SimOptions.of(options, CheckKeywords), races=races), memory)
        world = devices_of_process().world
        with self.kernel.module.explaining():
            device = engine if world is None else DeviceEngine(world, engine)
            result = device.launch(ready.program, ready.config, ready.values)
        ready.tensors.finish()
        return result

    def check(
        self,
        grid: "Size",
        block: "Size | None" = None,
        *,
        outputs: Collection[str] = (),
        shared: int = 0,
        memory: Sequence[NumPyArray] = (),
        cluster: "Size | None" = None,
        cooperative: bool = False,
        **options: Unpack[CheckKeywords],
    ) -> Report:
        """Finds all faults of a launch on the simulator, on copies of the arguments. Those named in `outputs` count as
        unwritten before the launch, which must write each of their elements. The other options are those of `launch`.

        An instruction that is not supported makes the verdict `incomplete`. Raises LaunchError for arguments and sizes
        that do not fit.
        """
        module, label = self.kernel.module, plain_name(self.kernel.function.name)
        try:
            ready = self._ready(grid, block, shared, cluster, cooperative=cooperative)
        except TilefoldError as error:
            if (gap := gap_of(error, label)) is None:
                raise
            return reported([Examination([label], [PTX_STAGE], [], module.source, [gap])])
        for name in outputs:
            if not isinstance(ready.values.get(name), TensorArgument):
                known = ", ".join(name for name, value in ready.values.items() if isinstance(value, TensorArgument))
                raise LaunchError(Code.RUN_ARGUMENT, f"outputs: '{name}' is not an array", f"arrays: {known or 'none'}")
        given = SimOptions.of(options, CheckKeywords)
        engine = replace(self._engine(given, memory), sink=discard)
        launch = DiagnosedLaunch(ready.program, ready.config, lambda: _copies(ready.values, outputs), engine)
        with module.explaining():
            outcome = examined(label, PTX_STAGE, launch, module.source)

        def repeated() -> Mapping[str, Any]:
            values = {name: ready.values[name] for name in self.kernel.names}
            name = self.kernel.function.name
            check = repeated_ptx(module, name, ready.config, values, outputs, shared, given)
            return replay_of([check], seed=given.seed, resident=given.resident)

        hidden = memory or module.reached() or any(isinstance(value, TensorMapArgument) for value in self.arguments)
        is_whole = not hidden and not ready.config.attributes  # options can say it
        examination = Examination([label], [PTX_STAGE], [outcome], module.source)
        return reported([examination], repeated if is_whole else None)

    def _ready(
        self, grid: "Size", block: "Size | None", shared: int, cluster: "Size | None", *, cooperative: bool
    ) -> _Ready:
        module, function = self.kernel.module, self.kernel.function
        size = block_of(function, None if block is None else dim3("block", block))
        config = LaunchConfig(dim3("grid", grid), size, attributes=launch_attributes(cluster, cooperative=cooperative))
        types, values, tensors = self._bound()
        with module.explaining():
            lowered, variables = module.lowered(function, types, size, shared, self.kernel.names)
        code = SimProgram(lowered, plain_symbol(function.name), registers=partial(module.registers, function))
        return _Ready(code, config, {**values, **variables}, tensors)

    def _engine(self, options: SimOptions, memory: Sequence[NumPyArray]) -> SimEngine:
        module = self.kernel.module
        return SimEngine(options, memory=self._pieces(memory), tensor_cores=module.tensor_cores)

    def _pieces(self, memory: Sequence[NumPyArray]) -> Callable[[], Sequence[NDArray[np.uint8]]]:
        """The bytes of arrays of the host that the kernel reaches otherwise than by an argument, in ascending order."""
        maps = [value.memory for value in self.arguments if isinstance(value, TensorMapArgument)]
        arrays = [np.asarray(array).reshape(-1).view(np.uint8) for array in (*memory, *self.kernel.module.reached())]
        pieces: list[NDArray[np.uint8]] = []
        for piece in sorted((*arrays, *maps), key=lambda piece: (piece.ctypes.data, -piece.nbytes)):
            if not pieces or piece.ctypes.data >= pieces[-1].ctypes.data + pieces[-1].nbytes:
                pieces.append(piece)
        return lambda: pieces

    def _bound(self) -> tuple[tuple[Attribute, ...], Mapping[str, Any], HostTensors]:
        """The types of the parameters, the arguments by their names, and those that are arrays."""
        types: list[Attribute] = []
        values = {}
        arrays: dict[str, Any] = {}
        parameters = self.kernel.function.parameters
        for name, parameter, value in zip(self.kernel.names, parameters, self.arguments, strict=True):
            if parameter.is_structure:
                types.append(GLOBAL)
                values[name] = TensorArgument(_structure(name, value, parameter.size))
            elif is_array(value) and getattr(value, "shape", ()) != ():
                if parameter.size != 8 or parameter.type[0] == "f":
                    raise argument_error(name, f"is of type .{parameter.type}, which is not passed as an array")
                array = arrays[name] = array_of(name, value)
                if array.device is not None:
                    raise argument_error(name, "is in the memory of a GPU", "pass an array in the host's memory")
                types.append(GLOBAL)
            else:
                types.append(type_of(parameter.type))
                values[name] = value
        tensors = HostTensors(arrays)
        return tuple(types), {**values, **tensors.arguments}, tensors


def _structure(name: str, value: Any, size: int) -> NDArray[np.uint8]:
    """The bytes of a structure. LaunchError (E3106) unless there are `size` of them."""
    given: bytes | None = None
    if isinstance(value, TensorMapArgument) and len(value.content) <= size:
        given = value.content.ljust(size, b"\0")
    with suppress(TypeError, ValueError):
        given = given if isinstance(value, str | int | TensorMapArgument) else bytes(memoryview(value).cast("B"))
    if given is None or len(given) != size:
        problem = f"is a structure of {size} bytes, which {type(value).__name__} is not"
        raise argument_error(name, problem, "pass bytes, an instance of ctypes.Structure, or a tensor map")
    return np.frombuffer(given, np.uint8).copy()


def _copies(values: Mapping[str, Argument], outputs: Collection[str]) -> dict[str, Argument]:
    """Arguments of their own for a launch, those of `outputs` without values."""
    copies = copied(values)
    made = dict(values)
    for name, value in values.items():
        if isinstance(value, TensorArgument):
            storage = copies[id(value.storage)]
            if name in outputs:
                storage.view(np.uint8)[:] = 0xFF
            made[name] = replace(value, storage=storage, initialised=name not in outputs)
    return made


def load_ptx(program: "str | PathLike[str]") -> PtxProgram:
    """Reads a PTX module: a path, or its text, which has several lines. Its kernels run on the simulator, with all its
    checks: `tilefold.load_ptx(text)["scale"](A, B, 3).launch(grid=4, block=128)`.

    Raises PtxError (E1008) for malformed text, TilefoldError for a file that cannot be read.
    """
    given = fspath(program)
    name, text = ("<ptx>", given) if "\n" in given else (given, read_text(given))
    return PtxProgram(PtxModule.read(text, name))


def repeated_ptx(
    module: PtxModule,
    kernel: str,
    config: LaunchConfig,
    values: Mapping[str, Argument],
    outputs: Collection[str],
    shared: int,
    options: SimOptions,
) -> Repeated:
    """The check of a launch whose arguments have these `values`; those among `outputs` have none."""
    words = ["--launch", kernel, "--grid", _size(config.grid), "--block", _size(config.block)]
    words += ["--shared", str(shared)] if shared else []
    words += simulation_options(options)
    arrays: dict[str, NumPyArray] = {}
    for name, value in values.items():
        if not isinstance(value, TensorArgument):
            words += ["--arg", f"{name}={value.item() if isinstance(value, np.generic) else value}"]
        elif name in outputs:
            words += ["--arg", f"{name}={_element(value.storage)}[{value.storage.size}]"]
        else:
            arrays[name] = _plain(value.storage)
    return Repeated(module.source.name, module.source.text, words, arrays, module.compiled_text, is_ptx=True)


def _size(size: tuple[int, int, int]) -> str:
    return ",".join(map(str, size))


def _element(array: NumPyArray) -> str:
    """The name of the type of an array's elements."""
    element = next(e for e in ELEMENT_TYPES if e.bits >= 8 and numpy_type(e) == array.dtype)
    return element.signed_name or element.ptx


def _plain(array: NumPyArray) -> NumPyArray:
    """An array of a type that .npy files have: of the same bytes, as integers, where NumPy lacks it."""
    return array if array.dtype.isbuiltin == 1 else array.view(f"u{array.itemsize}")
