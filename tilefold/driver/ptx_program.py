# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels of PTX or CUDA C++ files as programs, so that commands launch and check them as those of .cute files.

Such a program has only the stage `ptx`. PTX says neither the sizes nor the elements of arrays, so that the options of
the command say them.
"""

import re
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar

import numpy as np
from xdsl.dialects.builtin import IntAttr, ModuleOp, i8
from xdsl.ir import Attribute

from tilefold.base.element_types import ELEMENT_TYPES, ElementType
from tilefold.base.errors import Code, TilefoldError
from tilefold.base.spaces import GMEM
from tilefold.base.target import DEFAULT_ARCH, Target
from tilefold.compiler.machine.nvrtc import compile_cuda
from tilefold.compiler.pipeline import make_context
from tilefold.compiler.ptx.registers import type_of
from tilefold.compiler.ptx.syntax import Function, Parameter, Place
from tilefold.dialects.cute import LayoutAttr
from tilefold.dialects.element_types import ir_type
from tilefold.dialects.ptx import SpaceAttr
from tilefold.dialects.ptx.base import GLOBAL, MAP
from tilefold.dialects.tile import TensorType
from tilefold.driver.filled_arguments import read_array
from tilefold.driver.launches import Argument, Changes, Expression, Launch, apply_changes
from tilefold.driver.lowering import PTX_STAGE, Program
from tilefold.driver.map_arguments import array_of_map, check_map_parameter, recipe_of, with_maps
from tilefold.driver.ptx_module import (
    PtxModule,
    PtxSource,
    block_of,
    parameter_names,
    plain_name,
    plain_symbol,
)
from tilefold.layout.algebra.core import make_row_major_layout
from tilefold.runtime.engine import numpy_type
from tilefold.runtime.settings import ptxas_settings

SUFFIXES = (".ptx", ".cu")
"""The endings of the names of such files."""
_SHAPE = re.compile(r"(\w+)\[(\d{1,10}(?:,\d{1,10})*)\]")
_NUMBER = re.compile(
    r"[+-]?(?:0[xX][0-9a-fA-F]{1,16}|(?:\d{1,40}(?:\.\d{0,40})?|\.\d{1,40})(?:[eE][+-]?\d{1,4})?|inf|nan)"
)
_POINTER = Parameter("", "u64", 8, 8, Place(0, 0))
_ALIGN = 256  # of allocations on a GPU
_ELEMENTS: Mapping[str, ElementType] = {
    name: element
    for element in ELEMENT_TYPES
    if element.bits >= 8
    for name in (element.signed_name, element.ptx)
    if name
}


@dataclass
class PtxProgram(Program):
    """A program of one kernel that was read from PTX, with the launch that the command line describes."""

    read: PtxModule = field(kw_only=True)
    launch: Launch = field(kw_only=True)
    simulated_stage: ClassVar[str] = PTX_STAGE

    @cached_property
    def tensor_cores(self) -> Target | None:
        """The target of the text, also of one that another program has compiled."""
        return self.read.tensor_cores

    @property
    def stage(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The only stage."""
        return PTX_STAGE

    def has(self, stage: str) -> bool:
        return stage == PTX_STAGE

    def at(self, stage: str, target: Target | None = None, *, explain: bool = True) -> ModuleOp | None:
        return self.module if stage == PTX_STAGE else None

    def reached(self, stage: str, target: Target | None = None) -> ModuleOp:
        if stage != PTX_STAGE:
            message = f"{self.source.name} has no stage '{stage}'"
            raise TilefoldError(Code.CLI_VALUE, message, f"a program that is read from PTX has the stage {PTX_STAGE}")
        return self.module

    def simulated_target(self, stage: str, *, by_stages: bool = False) -> Target:
        return self.target or Target(DEFAULT_ARCH)

    def launches(self, changes: Changes) -> list[Launch]:
        kernel = self.read.find(None if changes.name is None else changes.name)
        if plain_symbol(kernel.name) != self.launch.kernel:
            raise TilefoldError(Code.RUN_KERNEL, f"nothing launches {kernel.name[:80]}", "name it by --launch")
        return [apply_changes(replace(self.launch, block=changes.block or self.launch.block), changes)]

    @contextmanager
    def explaining(self) -> Generator[None, None, None]:
        with self.read.explaining():
            yield


def compiled_cuda(text: str, path: str, target: Target | None, macros: Mapping[str, str], nvrtc: Sequence[str]) -> str:
    """The PTX of a .cu file by NVRTC with `macros` and options. TilefoldError for one that it does not compile."""
    arch = (target or Target(DEFAULT_ARCH)).arch
    return compile_cuda(text, path, arch, macros, ptxas_settings().cuda_home, nvrtc)


def load_ptx_program(
    text: str,
    path: str,
    changes: Changes,
    arguments: Mapping[str, str],
    shared: int = 0,
    target: Target | None = None,
    compiled: str = "",
) -> PtxProgram:
    """Reads the text of a .ptx file, or of a program in another language with its `compiled` PTX, and makes a program
    of the kernel that `changes` name, or of the only one. `arguments` describe its parameters, by their names: a
    .npy file, a number, or `f32[128,64]`. `shared` are the bytes of its array of shared memory without a size.

    Raises ProgramError for malformed text and an unsupported instruction, TilefoldError for arguments that are missing
    or do not fit.
    """
    source = PtxSource(path, text, text)
    module = PtxModule.compiled(compiled, source) if compiled else PtxModule.read(text, path)
    function = module.find(changes.name)
    names = parameter_names(function)
    if compiled:
        names = _names_in_cuda(text, function) or names
    arrays = {name: array for name, value in arguments.items() if (array := array_of_map(value)) is not None}
    given = _chosen(names, function, arguments, changes.fills, arrays)
    block = block_of(function, changes.block)
    types = [MAP if name in arrays else GLOBAL if isinstance(given[name].type, TensorType) else given[name].type
             for name in names]  # fmt: skip
    maps = {name: recipe_of(arguments[name], given[array]) for name, array in arrays.items()}
    with module.explaining():
        lowered, variables = module.lowered(function, types, block, shared, names)
        lowered = with_maps(lowered, maps)
    if module.reached():
        message = "a variable's initial value is an address, which only tilefold.load_ptx supports"
        raise TilefoldError(Code.PTX_UNSUPPORTED, message)
    memory = [
        Argument(name, _tensor(i8, variable.storage.shape), None, variable.storage.view(np.int8))
        for name, variable in variables.items()
    ]
    symbol = plain_symbol(function.name)
    launch = Launch(plain_name(function.name), symbol, changes.grid or (1, 1, 1), block, (*given.values(), *memory), ())
    source = module.source
    return PtxProgram(source, lowered, make_context(), target, read=module, launch=launch)


def is_array_file(text: str) -> bool:
    """Whether the value of an argument names a file: it is not a number, a tensor map or the type of an array."""
    return _NUMBER.fullmatch(text) is None and _SHAPE.fullmatch(text) is None and array_of_map(text) is None


def _chosen(
    names: list[str],
    function: Function,
    arguments: Mapping[str, str],
    fills: Mapping[str, str],
    arrays: Mapping[str, str],
) -> dict[str, Argument]:
    """The arguments of a launch, and the arrays of its tensor maps, which `arrays` name. TilefoldError (E3106) for a
    parameter without one, and for one that does not fit.
    """
    for name in (*arguments, *fills):
        if name not in (*names, *arrays.values()):
            known = ", ".join(names) or "none"
            raise TilefoldError(
                Code.RUN_ARGUMENT, f"the kernel has no argument '{name[:80]}'", f"its arguments: {known}"
            )
    parameters = dict(zip(names, function.parameters, strict=True))
    for name in arrays:
        if name not in parameters:
            raise TilefoldError(Code.RUN_ARGUMENT, f"the kernel has no argument '{name[:80]}' that is a tensor map")
        check_map_parameter(name, parameters[name])
    for array in arrays.values():
        parameters.setdefault(array, _POINTER)
    return {
        name: _argument(name, parameter, arguments.get(name), name in fills)
        for name, parameter in parameters.items()
        if name not in arrays
    }


def _argument(name: str, parameter: Parameter, text: str | None, is_filled: bool) -> Argument:
    if parameter.is_structure:
        return _structure(name, parameter, text)
    scalar = type_of(parameter.type)
    if text is None:
        if is_filled and parameter.size != 8:
            return Argument(name, scalar, None)
        message = f"argument '{name}' has no value"
        hint = f"--arg {name}=a.npy, --arg {name}=f32[1024] of an array with --fill, or a number: --arg {name}=7"
        raise TilefoldError(Code.RUN_ARGUMENT, message, hint)
    if _NUMBER.fullmatch(text):
        return Argument(name, scalar, Expression(text, None))
    if parameter.size != 8 or parameter.type[0] == "f":
        raise TilefoldError(
            Code.RUN_ARGUMENT, f"argument '{name}' is of type .{parameter.type}, which is not passed as an array"
        )
    if (match := _SHAPE.fullmatch(text)) is not None:
        element = _ELEMENTS.get(match[1])
        if element is None:
            raise TilefoldError(
                Code.RUN_ARGUMENT, f"--arg {name}: there is no type {match[1][:40]}", f"types: {', '.join(_ELEMENTS)}"
            )
        shape = tuple(map(int, match[2].split(",")))
        return Argument(name, _tensor(ir_type(element), shape), None if is_filled else Expression("poison", None))
    array = read_array(text)
    element = next((e for e in ELEMENT_TYPES if e.bits >= 8 and numpy_type(e) == array.dtype), None)
    if element is None or not array.size:
        problem = f"{text} holds {array.dtype} of shape {array.shape}, which is not the type of an argument"
        raise TilefoldError(Code.RUN_ARGUMENT, problem, "save an array of integers or floats")
    values = array.view(f"i{array.itemsize}") if array.dtype.kind == "u" else array
    return Argument(name, _tensor(ir_type(element), array.shape or (1,)), None, np.ascontiguousarray(values))


def _structure(name: str, parameter: Parameter, path: str | None) -> Argument:
    """A structure, whose bytes are in a .npy file."""
    array = np.zeros(0, np.uint8) if path is None or not is_array_file(path) else read_array(path)
    if array.nbytes != parameter.size:
        message = f"argument '{name}' is a structure of {parameter.size} bytes"
        raise TilefoldError(Code.RUN_ARGUMENT, message, "give a .npy file of that size")
    values = np.ascontiguousarray(array).reshape(-1).view(np.int8)
    return Argument(name, _tensor(i8, values.shape), None, values)


def _tensor(element: Attribute, shape: tuple[int, ...]) -> TensorType:
    layout = LayoutAttr(make_row_major_layout(shape))
    return TensorType(element, SpaceAttr(GMEM), IntAttr(_ALIGN), layout)


def _names_in_cuda(text: str, function: Function) -> list[str] | None:
    """The names of a kernel's parameters in its source, which PTX does not have; None where they are not found."""
    begin = re.search(rf"\b{re.escape(plain_name(function.name))}\s*\(([^(){{}};]*)\)\s*\{{", text)
    if begin is None:
        return None
    words = [re.findall(r"[A-Za-z_]\w*", part) for part in begin[1].split(",") if part.strip()]
    names = [found[-1] for found in words if found]
    return names if len(set(names)) == len(function.parameters) else None
