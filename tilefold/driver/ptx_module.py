# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PTX that another compiler made: its kernels as operations, and messages at the lines of its source."""

import linecache
import re
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import PurePath
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute

from tilefold.base.errors import Code, TilefoldError
from tilefold.base.spaces import CMEM, GMEM
from tilefold.base.target import Target
from tilefold.compiler.frontend.diagnostics import Diagnostic, Place, ProgramError, Severity
from tilefold.compiler.frontend.source import Source
from tilefold.compiler.machine.assemble import assemble
from tilefold.compiler.ptx.expansion import address_of_function
from tilefold.compiler.ptx.parser import parse_ptx
from tilefold.compiler.ptx.places import locations
from tilefold.compiler.ptx.syntax import Function, Module, PtxError, Variable
from tilefold.compiler.ptx.translate import translate
from tilefold.compiler.ptx.variables import HEAP
from tilefold.dialects.kernel import LaunchBounds
from tilefold.dialects.ptx import EntryOp
from tilefold.runtime.engine import TensorArgument
from tilefold.runtime.errors import Dim3, LaunchError
from tilefold.runtime.sim.faults import SimulationError

_MANGLED = re.compile(r"_Z(\d+)(.*)")
_NAME = re.compile(r"[A-Za-z_]\w{0,254}")
_ASSEMBLY = re.compile(r"// begin inline asm\n.*?// end inline asm", re.DOTALL)
_LOC = re.compile(r"^\s*\.loc.*$", re.MULTILINE)
"""LLVM counts the lines of assembly from that of the call on, which lead beyond it."""
_PARAMETER = re.compile(r".*_(param_\d+)")


_VARIABLE = "variable_"
"""The beginning of the name by which a launch passes a variable in global memory."""
_IN_CUDA: Mapping[str, str] = MappingProxyType({
    "ptx.bar.warp.sync": "__syncwarp()",
    'ptx.fence "acq_rel"': "__threadfence()",
    "use ptx.atom or ptx.red": "use atomicAdd or another of its kind",
    "execute ptx.wgmma.fence between the access of the registers and the multiplication": (
        "execute wgmma.fence between the access of the registers and the multiplication; where the source has that, "
        'the compiler has moved the access: asm volatile("" : "+f"(d) :: "memory") for each accumulator d before the '
        "fence keeps it in front"
    ),
})  # fmt: skip
"""Operations that hints name, and their names in CUDA C++."""


@dataclass(frozen=True)
class PtxSource(Source):
    """The text of a module, or of the program that it was compiled from, and that of other files that it names."""

    def line_of(self, file: str, number: int) -> str:
        """The text of a line of a file."""
        return self.line(number) if file == self.name else linecache.getline(file, number).rstrip("\n")

    def spelled(self, message: str) -> str:
        """A message with the names that variables have, and in the words of CUDA C++ if the program is that."""
        message = message.replace(f"argument {_VARIABLE}", "variable ").replace("shared tensor %", "shared array ")
        for operation, name in _IN_CUDA.items() if PurePath(self.name).suffix == ".cu" else ():
            message = message.replace(operation, name)
        return message


@dataclass(frozen=True)
class PtxModule:
    """A PTX module. Its places are those in the text itself, which is in `file`, or those that `.loc` says, in `files`
    by their numbers.
    """

    module: Module
    file: str
    source: Source = field(repr=False)
    files: Mapping[int, str] = field(default_factory=dict[int, str])
    memory: dict[str, NDArray[np.uint8]] = field(default_factory=lambda: {}, repr=False)
    """The bytes of variables in global memory, which launches change."""
    compiled_text: str = field(default="", repr=False)
    """The PTX of a source in another language."""

    @classmethod
    def read(cls, text: str, file: str) -> "PtxModule":
        """The module of a text. PtxError (E1008) for malformed text."""
        return cls(parse_ptx(text, file), file, PtxSource(file, text, text))

    @classmethod
    def compiled(cls, text: str, source: Source) -> "PtxModule":
        """The module that a compiler made of a source; of the files that its instructions come from, those of the
        source and beside it count, so that calls of libraries are where the source has them.
        """
        plain = _ASSEMBLY.sub(lambda found: _LOC.sub("", found[0]), text)
        module = parse_ptx(plain, f"the PTX of {source.name}")
        folder, name = PurePath(source.name).parent, PurePath(source.name).name
        files = {
            number: source.name if PurePath(file).name == name else file
            for number, file in module.files.items()
            if PurePath(file).name == name or folder in PurePath(file).parents
        }
        return cls(module, f"the PTX of {source.name}", source, files, compiled_text=text)

    def find(self, name: str | None) -> Function:
        """A kernel by its name or, of C++, by that of the function; the only one without a name. TilefoldError (E3107)
        unless there is exactly one.
        """
        entries = self.module.entries
        found = [entry for entry in entries if name in (None, entry.name)]
        found = found or [entry for entry in entries if plain_name(entry.name) == name]
        if len(found) != 1:
            asked = "kernel" if name is None else f"kernel {name[:80]!r}"
            problem = f"{'no' if not found else 'more than one'} {asked} in {self.source.name}"
            known = ", ".join(entry.name for entry in entries) or "none"
            choose = "; --launch NAME takes one" if found and name is None else ""
            raise TilefoldError(Code.RUN_KERNEL, problem, f"its kernels: {known}{choose}")
        return found[0]

    def lowered(
        self, function: Function, types: Sequence[Attribute], block: Dim3, shared: int, names: Sequence[str] = ()
    ) -> tuple[ModuleOp, Mapping[str, TensorArgument]]:
        """A kernel as operations of stage `instr`, and the variables that a launch passes after the arguments.
        `shared` are the bytes of its array of shared memory without a size, `names` those of its parameters in
        messages. PtxError (E1009) for an instruction that is not supported.
        """
        locate = locations(self.files, self.file, self.module)
        body = translate(self.module, function, types, self.file, locate, shared)
        bounds = LaunchBounds(block, cluster=function.cluster)
        aligns = [max(parameter.align, 1) for parameter in function.parameters]
        variables = {f"{_VARIABLE}{plain_symbol(v.name)}": self._bytes_of(v) for v in body.variables}
        names = [*(names or parameter_names(function)), *variables]
        aligns += [1] * len(variables)
        symbol = plain_symbol(function.name)
        entry = EntryOp(symbol, names, aligns, bounds, body.region, body.shared_bytes or None)
        return ModuleOp([entry]), variables

    @property
    def tensor_cores(self) -> Target | None:
        """The target of the text, whose tensor cores the simulator imitates; None for one that is not known."""
        try:
            return Target(self.module.target)
        except TilefoldError:
            return None

    def registers(self, function: Function) -> int | None:
        """The registers of a kernel's thread, by the assembler; None where it is missing or refuses the text."""
        try:
            cubin = assemble(self.compiled_text or self.source.text, Target(self.module.target))
        except TilefoldError:
            return None
        return cubin.kernels[function.name].registers

    def _bytes_of(self, variable: Variable) -> TensorArgument:
        """The bytes of a variable, as the launches so far have left them; at first zero without an initialiser. Each
        launch has a heap of its own.
        """
        if variable.name == HEAP:
            return TensorArgument(np.zeros(variable.size, np.uint8))
        if variable.name not in self.memory:
            given = np.frombuffer((variable.initial or b"").ljust(variable.size, b"\0"), np.uint8)
            self.memory[variable.name] = given.copy()
            for at, symbol in variable.addresses.items():
                if symbol.name in self.module.functions:
                    number = address_of_function(self.module, symbol.name)
                    self.memory[variable.name][at : at + 8].view(np.uint64)[0] = number
                    continue
                target = self.module.variables.get(symbol.name)
                if target is None or target.space not in (GMEM.ptx, CMEM.ptx):
                    text = f"the initialiser names {symbol.name}, which is not a variable in global memory"
                    raise PtxError(Code.PTX_UNSUPPORTED, text, variable.place, file=self.file)
                address = self._bytes_of(target).storage.ctypes.data + symbol.offset
                self.memory[variable.name][at : at + 8].view(np.uint64)[0] = address
        return TensorArgument(self.memory[variable.name])

    def reached(self) -> "list[NDArray[np.uint8]]":
        """The bytes of the variables so far whose addresses are initial values of others."""
        variables = self.module.variables
        named = {s.name for name in self.memory if name in variables for s in variables[name].addresses.values()}
        return [self.memory[name] for name in sorted(named & self.memory.keys())]

    @contextmanager
    def explaining(self) -> Generator[None]:
        """Within it, an error shows its line of the text."""
        try:
            yield
        except (SimulationError, PtxError) as error:
            if isinstance(error, PtxError):
                file, line, column, message = error.file, error.place.line, error.place.column, error.problem
            elif error.site is None or not error.site.file:
                raise
            else:
                file, line, column, message = error.site.file, error.site.line, error.site.column, error.fault
            text = self.source.line_of(file, line)
            end = column + len(text[column - 1 :].split(";")[0])
            place = Place(file, line, column, end, text)
            message, hint = self.source.spelled(message), self.source.spelled(error.hint)
            raise ProgramError([Diagnostic(Severity.ERROR, message, place, error.code, hint)]) from error


def block_of(function: Function, block: Dim3 | None) -> Dim3:
    """The block of a launch: the given one, or that which the kernel requires. LaunchError (E3105) without one, and if
    they differ.
    """
    size = function.block if block is None else block
    if size is None:
        raise LaunchError(Code.RUN_LAUNCH, "the launch has no block", "give block=(x, y, z), or --block")
    if function.block is not None and size != function.block:
        message = f"the kernel requires blocks of {function.block} threads, not {size}"
        raise LaunchError(Code.RUN_LAUNCH, message, "leave out the block")
    return size


def parameter_names(function: Function) -> list[str]:
    """The names of the parameters, as messages and options use them: `param_0` of a function in C++."""
    names = [parameter.name for parameter in function.parameters]
    short = [match[1] if (match := _PARAMETER.fullmatch(name)) else name for name in names]
    return [name if _NAME.fullmatch(name) else f"param_{index}" for index, name in enumerate(short)]


def plain_name(name: str) -> str:
    """The function's name in one that C++ has mangled."""
    match = _MANGLED.fullmatch(name)
    return name if match is None else match[2][: int(match[1])]


def plain_symbol(name: str) -> str:
    """A name that a kernel can have."""
    return name if _NAME.fullmatch(name) else re.sub(r"\W", "_", name)[:255]
