# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`tilefold.load_ptx`: the kernels of a PTX text, of any compiler, launched on the simulator."""

import re
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute

from tilefold.base.errors import Code, TilefoldError
from tilefold.compiler.frontend.diagnostics import Diagnostic, Place, ProgramError, Severity
from tilefold.compiler.frontend.source import read_text
from tilefold.compiler.ptx.parser import parse_ptx
from tilefold.compiler.ptx.registers import type_of
from tilefold.compiler.ptx.syntax import Function, Module, PtxError, Variable
from tilefold.compiler.ptx.translate import locations, translate
from tilefold.dialects.kernel import LaunchBounds
from tilefold.dialects.ptx import EntryOp
from tilefold.dialects.ptx.base import GLOBAL
from tilefold.runtime.arrays.array import array_of, is_array
from tilefold.runtime.arrays.host_tensors import HostTensors
from tilefold.runtime.engine import LaunchConfig, RunResult, TensorArgument
from tilefold.runtime.errors import LaunchError, argument_error, dim3
from tilefold.runtime.options import CheckKeywords, SimOptions, launch_attributes
from tilefold.runtime.sim.faults import SimulationError
from tilefold.runtime.sim.sim_engine import SimEngine, SimProgram

if TYPE_CHECKING:
    from tilefold.cute.kernel import Size
    from tilefold.runtime.errors import Dim3

_MANGLED = re.compile(r"_Z(\d+)(.*)")
_NAME = re.compile(r"[A-Za-z_]\w{0,254}")


@dataclass(frozen=True)
class PtxProgram:
    """A PTX module that has been read. `program["k"]` is a kernel, by its name or, of C++, by that of the function."""

    module: Module
    file: str
    lines: tuple[str, ...] = field(repr=False)
    memory: dict[str, NDArray[np.uint8]] = field(default_factory=lambda: {}, repr=False)
    """The bytes of variables in global memory, which launches change."""

    @property
    def kernels(self) -> tuple[str, ...]:
        """The names of the kernels, in the order of the text."""
        return tuple(entry.name for entry in self.module.entries)

    def __getitem__(self, name: str) -> "PtxKernel":
        """A kernel. TilefoldError (E3107) unless exactly one has the name."""
        exact = [entry for entry in self.module.entries if entry.name == name]
        found = exact or [entry for entry in self.module.entries if _plain_name(entry.name) == name]
        if len(found) != 1:
            problem = f"{'no' if not found else 'more than one'} kernel {name[:80]!r} in {self.file}"
            raise TilefoldError(Code.RUN_KERNEL, problem, f"its kernels: {', '.join(self.kernels) or 'none'}")
        return PtxKernel(self, found[0])

    @contextmanager
    def explaining(self) -> Generator[None]:
        """Within it, an error shows its line of the text."""
        try:
            yield
        except (SimulationError, PtxError) as error:
            if isinstance(error, PtxError):
                line, column, message = error.place.line, error.place.column, error.message.split(": ", 1)[-1]
            elif error.site is None or error.site.file != self.file:
                raise
            else:
                line, column, message = error.site.line, error.site.column, error.fault
            text = self.lines[line - 1] if line <= len(self.lines) else ""
            end = column + len(text[column - 1 :].split(";")[0])
            place = Place(self.file, line, column, end, text)
            raise ProgramError([Diagnostic(Severity.ERROR, message, place, error.code, error.hint)]) from error


@dataclass(frozen=True)
class PtxKernel:
    """A kernel of a PTX module; a call gives it its arguments, in order."""

    program: PtxProgram
    function: Function

    def __call__(self, *args: Any) -> "PtxKernelCall":
        wanted = len(self.function.parameters)
        if len(args) != wanted:
            raise TypeError(f"kernel {self.function.name} takes {wanted} arguments, not {len(args)}")
        return PtxKernelCall(self, args)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the parameters, as messages use them."""
        names = [parameter.name for parameter in self.function.parameters]
        return tuple(name if _NAME.fullmatch(name) else f"param_{index}" for index, name in enumerate(names))

    def lowered(
        self, types: tuple[Attribute, ...], block: "Dim3", shared: int
    ) -> tuple[ModuleOp, Mapping[str, TensorArgument]]:
        """The kernel as operations of stage `instr`, and the variables that a launch passes behind the arguments.
        PtxError (E1009) for an instruction that is not supported.
        """
        program, function = self.program, self.function
        locate = locations({}, program.file)
        body = translate(program.module, function, types, program.file, locate, shared)
        bounds = LaunchBounds(block, cluster=function.cluster)
        aligns = [max(parameter.align, 1) for parameter in function.parameters]
        variables = {f"variable_{_plain_symbol(v.name)}": _memory(program, v) for v in body.variables}
        entry = EntryOp(
            _plain_symbol(function.name),
            [*self.names, *variables],
            [*aligns, *[1] * len(variables)],
            bounds,
            body.region,
            body.shared_bytes or None,
        )
        module = ModuleOp([entry])
        return module, variables


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
        races: bool = True,
        **options: Unpack[CheckKeywords],
    ) -> RunResult:
        """Runs the kernel on the simulator over a grid of blocks, with all its checks, and waits for it.

        An array, of NumPy or another library, is a pointer; numbers are passed as the parameter's type says. `block`
        is the size of a block, unless the kernel requires one (`.reqntid`); `shared` the bytes of shared memory for an
        array without a size (`.extern .shared`). The other options are those of a kernel of a file. Raises PtxError
        (E1009) for an instruction that is not supported, before anything runs, LaunchError for arguments and sizes that
        do not fit, and SimulationError for faults.
        """
        kernel, function = self.kernel, self.kernel.function
        if block is None and function.block is None:
            raise LaunchError(Code.RUN_LAUNCH, "the launch has no block", "write .launch(..., block=(x, y, z))")
        size = function.block if block is None else dim3("block", block)
        assert size is not None
        if function.block is not None and size != function.block:
            message = f"the kernel requires blocks of {function.block} threads, not {size}"
            raise LaunchError(Code.RUN_LAUNCH, message, "leave out block=")
        attributes = launch_attributes(cluster, cooperative=cooperative)
        config = LaunchConfig(dim3("grid", grid), size, attributes=attributes)
        types, values, tensors = self._bound()
        engine = SimEngine(replace(SimOptions.of(options, CheckKeywords), races=races))
        with kernel.program.explaining():
            module, variables = kernel.lowered(types, size, shared)
            program = SimProgram(module, _plain_symbol(function.name))
            result = engine.launch(program, config, {**values, **variables})
        tensors.finish()
        return result

    def _bound(self) -> tuple[tuple[Attribute, ...], Mapping[str, Any], HostTensors]:
        """The types of the parameters, the arguments by their names, and those that are arrays."""
        types: list[Attribute] = []
        values: dict[str, Any] = {}
        arrays: dict[str, Any] = {}
        parameters = zip(self.kernel.names, self.kernel.function.parameters, self.arguments, strict=True)
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


def _memory(program: PtxProgram, variable: Variable) -> TensorArgument:
    """The bytes of a variable, as the launches so far have left them; at first zero without an initialiser."""
    if variable.name not in program.memory:
        given = np.frombuffer((variable.initial or b"").ljust(variable.size, b"\0"), np.uint8)
        program.memory[variable.name] = given.copy()
    return TensorArgument(program.memory[variable.name])


def _plain_name(name: str) -> str:
    """The function's name in one that C++ has mangled."""
    match = _MANGLED.fullmatch(name)
    return name if match is None else match[2][: int(match[1])]


def _plain_symbol(name: str) -> str:
    """A name that a kernel can have."""
    return name if _NAME.fullmatch(name) else re.sub(r"\W", "_", name)[:255]


def load_ptx(program: "str | PathLike[str]") -> PtxProgram:
    """Reads a PTX module: a path, or its text, which has several lines. Its kernels run on the simulator, with all its
    checks: `tilefold.load_ptx(text)["scale"](A, B, 3).launch(grid=4, block=128)`.

    Raises PtxError (E1008) for malformed text, TilefoldError for a file that cannot be read.
    """
    given = fspath(program)
    name, text = ("<ptx>", given) if "\n" in given else (given, read_text(given))
    return PtxProgram(parse_ptx(text, name), name, tuple(text.splitlines()))
