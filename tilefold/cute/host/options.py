# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The options of `cute.compile`."""

import argparse
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, NoReturn

from tilefold.base.errors import Code, TilefoldError
from tilefold.base.target import Target
from tilefold.builder.tensors.coordinates import as_tuple

from ..compiled_kernel import Compilation

_LEVELS = range(4)


@dataclass(frozen=True, slots=True)
class CompileOptions:
    """The options of `cute.compile`.

    `opt_level` is that of ptxas, 3 where nothing else is said; `line_info` says whether compiled code names the lines
    of the source, and `assertions` whether a GPU checks the assertions of kernels, as the simulator does: None leaves
    that to the settings. `keep_ptx`, `keep_cubin` and `keep_sass` write PTX, machine code and that as text into
    `dump_dir`, which nvdisasm prints by `nvdisasm_options`. `gpu_arch` is the target, by default that of the GPU at
    hand, and `ptxas_options` are more options of ptxas. Calls take the arrays of other libraries as they are; with
    `enable_tvm_ffi` they refuse those that are not such as the function is compiled for.
    """

    opt_level: int = 3
    line_info: bool | None = None
    keep_ptx: bool = False
    keep_cubin: bool = False
    keep_sass: bool = False
    nvdisasm_options: str = "-g -c"
    assertions: bool | None = None
    gpu_arch: str = ""
    ptxas_options: str = ""
    link_libraries: str = ""
    dump_dir: str = "."
    enable_tvm_ffi: bool = False

    def __post_init__(self) -> None:
        """Raises TilefoldError (E0213) for an option without effect here, TargetError for an unknown target."""
        if self.opt_level not in _LEVELS:
            raise _option_error(f"unknown optimisation level {self.opt_level!r}", "the levels are 0 to 3")
        if self.link_libraries:
            raise _option_error("no libraries are linked to kernels", "leave the option out")
        if self.gpu_arch:
            Target(self.gpu_arch)

    @property
    def compilation(self) -> Compilation:
        """How the kernels are compiled."""
        level = () if self.opt_level == _LEVELS[-1] else (f"-O{self.opt_level}",)
        target = Target(self.gpu_arch) if self.gpu_arch else None
        assembler = (*level, *shlex.split(self.ptxas_options))
        return Compilation(target, self.line_info, assembler, self.assertions)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise _unknown(message)


def _option_error(problem: str, hint: str) -> TilefoldError:
    return TilefoldError(Code.BAD_ARGUMENT, f"options of cute.compile: {problem}", hint)


def _unknown(problem: str) -> TilefoldError:
    return _option_error(problem, f"known are {', '.join(_NAMES)}")


_NAMES: Mapping[str, tuple[str, Any]] = MappingProxyType({
    "opt-level": ("opt_level", int), "generate-line-info": ("line_info", None), "keep-ptx": ("keep_ptx", None),
    "keep-cubin": ("keep_cubin", None), "keep-sass": ("keep_sass", None),
    "nvdisasm-options": ("nvdisasm_options", str), "enable-assertions": ("assertions", None),
    "gpu-arch": ("gpu_arch", str),
    "ptxas-options": ("ptxas_options", str), "enable-tvm-ffi": ("enable_tvm_ffi", None),
    "link-libraries": ("link_libraries", str), "dump-dir": ("dump_dir", str),
})  # fmt: skip
"""The field of each option by its name, and the type of its value, if it takes one."""


def _parser() -> _Parser:
    parser = _Parser(add_help=False, prog="cute.compile", allow_abbrev=False)
    for name, (field, type) in _NAMES.items():
        if type is None:
            parser.add_argument(f"--{name}", dest=field, action="store_const", const=True)
        else:
            parser.add_argument(f"--{name}", dest=field, type=type)
    return parser


def options_of(given: object) -> CompileOptions:
    """Options as text, as one of the classes below, or a tuple of these. TilefoldError (E0213) for unknown ones, and
    for those that have no effect here.
    """
    made = CompileOptions()
    for part in as_tuple(given):
        if isinstance(part, str):
            values = vars(_parser().parse_args(_split(part)))
            made = replace(made, **{n: v for n, v in values.items() if v is not None})
        elif isinstance(part, type) and issubclass(part, Option):
            made = part().applied(made)
        elif isinstance(part, Option):
            made = part.applied(made)
        else:
            raise _unknown(f"{part!r} is not an option")
    return made


def _split(text: str) -> list[str]:
    """The words of a text; a value of an option may begin with a dash, as in `--ptxas-options "-v"`."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise _option_error(f"{text!r}: {error}", "close the quotation") from error
    joined: list[str] = []
    for word in words:
        takes = joined and _NAMES.get(joined[-1].removeprefix("--"), ("", None))[1] is not None
        if takes and joined[-1].startswith("--"):
            joined[-1] += f"={word}"
        else:
            joined.append(word)
    return joined


@dataclass(frozen=True)
class Option:
    """An option of `cute.compile[...]`, with its value."""

    value: Any = True

    FIELD = ""

    def applied(self, options: CompileOptions) -> CompileOptions:
        """The options with this one. Raises TilefoldError (E0213) for a value that it cannot have."""
        before: object = getattr(CompileOptions(), self.FIELD)
        wanted: type[object] = bool if before is None else type(before)
        if type(self.value) is not wanted:
            name = type(self).__name__
            raise _option_error(
                f"{name}({self.value!r}) is not of type {wanted.__name__}", f"write {name}(...) with one"
            )
        return replace(options, **{self.FIELD: self.value})


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


class KeepSASS(Option):
    """Whether machine code is kept as text."""

    FIELD = "keep_sass"


class NvdisasmOptions(Option):
    """The options of nvdisasm, which prints machine code, as one text."""

    FIELD = "nvdisasm_options"


class EnableAssertions(Option):
    """Whether kernels check their assertions on a GPU."""

    FIELD = "assertions"


class GPUArch(Option):
    """The target of machine code, such as sm_90a."""

    FIELD = "gpu_arch"


class PtxasOptions(Option):
    """Options of the assembler, as one text."""

    FIELD = "ptxas_options"


class LinkLibraries(Option):
    """Libraries to link; none is supported."""

    FIELD = "link_libraries"


class DumpDir(Option):
    """The folder for kept files."""

    FIELD = "dump_dir"


class FrontendNext(Option):
    """Another frontend for the source of functions; tilefold has one, so it has no effect."""

    def applied(self, options: CompileOptions) -> CompileOptions:
        """The options as they are."""
        return options


class EnableTVMFFI(Option):
    """Whether calls reject arrays for which the function is not compiled."""

    FIELD = "enable_tvm_ffi"
