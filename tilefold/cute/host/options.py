# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The options of `cute.compile`."""

import argparse
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, NoReturn

from tilefold.base.errors import Code, TilefoldError
from tilefold.compiler.builder.tensors.coordinates import as_tuple


@dataclass(frozen=True, slots=True)
class CompileOptions:
    """What `cute.compile` is told besides the function. tilefold has one level of optimisation, always writes line
    information, and keeps every stage (`compiled.kernels`), so that most options are accepted and change nothing.
    """

    opt_level: int = 3
    line_info: bool = True
    keep_ptx: bool = False
    keep_cubin: bool = False
    assertions: bool = False
    gpu_arch: str = ""
    ptxas_options: str = ""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise _unknown(message)


def _unknown(problem: str) -> TilefoldError:
    hint = f"known are {', '.join(_NAMES)}"
    return TilefoldError(Code.BAD_ARGUMENT, f"options of cute.compile: {problem}", hint)


_NAMES: Mapping[str, tuple[str, Any]] = MappingProxyType({
    "opt-level": ("opt_level", int), "generate-line-info": ("line_info", None), "keep-ptx": ("keep_ptx", None),
    "keep-cubin": ("keep_cubin", None), "enable-assertions": ("assertions", None), "gpu-arch": ("gpu_arch", str),
    "ptxas-options": ("ptxas_options", str), "enable-tvm-ffi": ("", None), "link-libraries": ("", str),
    "dump-dir": ("", str),
})  # fmt: skip
"""By the name of an option its field, if it has one, and the type of its value, if it takes one."""


def _parser() -> _Parser:
    parser = _Parser(add_help=False, prog="cute.compile", allow_abbrev=False)
    for name, (field, type) in _NAMES.items():
        if type is None:
            parser.add_argument(f"--{name}", dest=field or "_", action="store_const", const=True)
        else:
            parser.add_argument(f"--{name}", dest=field or "_", type=type)
    return parser


def options_of(given: Any) -> CompileOptions:
    """Options as text, as one of the classes below, or a tuple of these. TilefoldError (E0212) for unknown ones."""
    made = CompileOptions()
    for part in as_tuple(given):
        if isinstance(part, str):
            values = vars(_parser().parse_args(shlex.split(part)))
            made = replace(made, **{n: v for n, v in values.items() if n != "_" and v is not None})
        elif isinstance(part, type) and issubclass(part, Option):
            made = part().applied(made)
        elif isinstance(part, Option):
            made = part.applied(made)
        else:
            raise _unknown(f"{part!r} is no option")
    return made


@dataclass(frozen=True)
class Option:
    """An option of `cute.compile[...]`, with its value."""

    value: Any = True

    FIELD = ""

    def applied(self, options: CompileOptions) -> CompileOptions:
        """The options with this one."""
        return replace(options, **{self.FIELD: self.value}) if self.FIELD else options


class OptLevel(Option):
    """The level of optimisation, 0 to 3."""

    FIELD = "opt_level"


class GenerateLineInfo(Option):
    """Whether machine code refers to lines of the source."""

    FIELD = "line_info"


class KeepPTX(Option):
    """Whether PTX is kept."""

    FIELD = "keep_ptx"


class KeepCUBIN(Option):
    """Whether machine code is kept."""

    FIELD = "keep_cubin"


class EnableAssertions(Option):
    """Whether the kernel checks assertions."""

    FIELD = "assertions"


class GPUArch(Option):
    """The target of machine code, such as sm_90a."""

    FIELD = "gpu_arch"


class PtxasOptions(Option):
    """Options of the assembler."""

    FIELD = "ptxas_options"


class EnableTVMFFI(Option):
    """Nothing: tilefold's calls need no other interface."""
