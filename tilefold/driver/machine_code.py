# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Machine code of programs, made once: compiled programs come from the cache on disk.

The key covers everything that the result depends on: the program's text, the target, and the versions of tilefold and
of its compilers. LLVM comes with llvmlite, so llvmlite's version stands for both.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import cache, cached_property
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from tilefold.base.assembler_warnings import assembler_warnings, first_refused
from tilefold.base.errors import Code, TilefoldError
from tilefold.runtime.compiled.artifact import Build, make_artifact
from tilefold.runtime.compiled.store import digest
from tilefold.runtime.settings import allows_slower, ptxas_settings
from tilefold.version import VERSION

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from tilefold.base.target import Target
    from tilefold.compiler.frontend.source import Source
    from tilefold.compiler.machine.assemble import Cubin
    from tilefold.compiler.machine.ptxas import Ptxas
    from tilefold.compiler.reports.remarks import Remark
    from tilefold.dialects.ptx import EntryOp
    from tilefold.passes.analysis.local_memory import LocalFragment
    from tilefold.runtime.compiled.store import Store

_TOOLS = ("xdsl", "llvmlite", "nvidia-nvjitlink", "cuda-bindings")
_COMPILER = ("layout", "dialects", "passes", "compiler", "runtime")


class Program(Protocol):
    """The properties of a program that its machine code depends on; `lowering.Program` has them."""

    @property
    def source(self) -> "Source": ...
    @cached_property
    def cache(self) -> "Store | None": ...
    @cached_property
    def identity(self) -> str: ...
    @property
    def assembler(self) -> tuple[str, ...]: ...
    def reached(self, stage: str, target: "Target | None" = None) -> "ModuleOp": ...
    def entries(self, target: "Target") -> "list[EntryOp]": ...
    def llvm(self, target: "Target") -> str: ...
    def ptx(self, target: "Target", *, lines: bool | None = None) -> str: ...
    def build(self, target: "Target") -> Build: ...
    def cubin(self, target: "Target") -> "Cubin": ...
    def writes_lines(self) -> bool: ...
    def keeps_assertions(self) -> bool: ...
    def explaining(self) -> AbstractContextManager[None]: ...


def build(program: Program, target: "Target") -> Build:
    """A program ready to be loaded, from the program's cache where it has one and knows it: machine code, or PTX where
    the driver must assemble it, since nvJitLink would drop instructions.

    Raises TilefoldError if a pass, LLVM or the assembler refuses the program, of which nothing is kept; and where
    the assembler makes a kernel slower than it is written, unless the settings allow that.
    """
    ptxas = _ptxas() if _needs_ptxas(program) else None
    return _build_from_cache(program, target, ptxas, lambda: _assemble(program, program.ptx(target), target, ptxas))


def machine_build(program: Program, target: "Target", loaded: Build) -> Build:
    """The result of `build` for the program, with machine code by ptxas where the driver would assemble it.

    Raises the errors of `build`, and AssembleError (E2302) where there is no ptxas.
    """
    if loaded.cubin:
        return loaded
    ptxas = _ptxas()
    return _build_from_cache(program, target, ptxas, lambda: _assemble(program, loaded.ptx, target, ptxas))


def _build_from_cache(program: Program, target: "Target", ptxas: "Ptxas | None", make: Callable[[], Build]) -> Build:
    def checked() -> Build:
        made = make()
        _check(program, target, made)
        return made

    store, key = program.cache, _key(program, target, ptxas)
    if store is None:
        return checked()
    kept = _read_cached(store.get(key))
    if kept is None:
        with store.making(key):
            kept = _read_cached(store.get(key))
            if kept is None:
                kept = checked()
                store.put(key, kept.to_bytes())
                return kept
    _check(program, target, kept)  # it may have been allowed before
    return kept


def _check(program: Program, target: "Target", made: Build) -> None:
    """ProgramError (E2303) where the assembler makes a kernel slower, unless the settings allow it; a RuntimeWarning
    then, and where calls of the program do.
    """
    if not assembler_warnings(made.log):
        return
    from tilefold.compiler.reports.assembler_remarks import refuse_slower, warn_of_slower

    told = made.log, made.ptx, program.entries(target), program.source
    if first_refused(made.log, allows_slower()) is not None:
        refuse_slower(*told)
    warn_of_slower(*told)


def with_lines(program: Program, target: "Target") -> tuple[str, str]:
    """The assembler's log for a program whose PTX names the lines of the source, and that PTX."""
    from tilefold.compiler.machine.assemble import assemble

    ptx = program.ptx(target, lines=True)
    assembler = _ptxas().assemble if _needs_ptxas(program, ptx) else assemble
    return assembler(ptx, target, program.assembler).log, ptx


def _needs_ptxas(program: Program, ptx: str = "") -> bool:
    """Whether ptxas assembles a program, by the settings or by its own options, or since its PTX takes it."""
    from tilefold.compiler.machine.ptxas import is_level, needs_whole_program

    return ptxas_settings().always or not all(map(is_level, program.assembler)) or needs_whole_program(ptx)


def _ptxas() -> "Ptxas":
    """The ptxas that the settings choose. AssembleError (E2302) where there is none."""
    from tilefold.compiler.machine.ptxas import find_ptxas

    settings = ptxas_settings()
    return find_ptxas(settings.program, settings.cuda_home)


def cached_build(program: Program, target: "Target") -> Build | None:
    """The result of `build` for a program and a target, if the program's cache has it and the settings allow it."""
    made = None if program.cache is None else _read_cached(program.cache.get(_key_of_build(program, target)))
    return None if made is None or first_refused(made.log, allows_slower()) is not None else made


def store_build(program: Program, target: "Target", made: Build) -> None:
    """Puts machine code that was made elsewhere into the program's cache, where it has one that lacks it."""
    if program.cache is not None and cached_build(program, target) is None:
        program.cache.put(_key_of_build(program, target), made.to_bytes())


def _key_of_build(program: Program, target: "Target") -> str:
    return _key(program, target, _ptxas() if _needs_ptxas(program) else None)


def _key(program: Program, target: "Target", ptxas: "Ptxas | None") -> str:
    lines = "" if program.writes_lines() else "without lines"
    checks = ["with assertions"] if program.keeps_assertions() else []
    key = digest(program.identity, target.arch, toolchain(), lines, *checks, *program.assembler)
    return key if ptxas is None else digest(key, "ptxas", ptxas.version)


@cache
def toolchain() -> str:
    """The versions of all that compiles: of the packages, and of tilefold's own files, which a checkout changes without
    a new version.
    """
    versions = [f"{name} {_version(name)}" for name in _TOOLS]
    return "\n".join([f"tilefold {VERSION}", *versions, *sorted({*_files()}), *sorted(_extensions())])


def _read_cached(data: bytes | None) -> Build | None:
    try:
        return None if data is None else Build.from_bytes(data)
    except ValueError:
        return None  # intact, but written by another version


def _assemble(program: Program, ptx: str, target: "Target", ptxas: "Ptxas | None") -> Build:
    """The PTX of a program, assembled by ptxas, else by nvJitLink, else left to the driver."""
    from tilefold.compiler.machine.assemble import assemble
    from tilefold.compiler.machine.ptxas import needs_whole_program

    code, log = b"", ""
    if ptxas is not None or not needs_whole_program(ptx):
        cubin = _explaining_refusals(program, ptx, target, assemble if ptxas is None else ptxas.assemble)
        code, log = cubin.code, cubin.log
    return Build(ptx, code, log, tuple(make_artifact(entry, code or ptx, target) for entry in program.entries(target)))


def _explaining_refusals(
    program: Program, ptx: str, target: "Target", assemble: "Callable[[str, Target, Sequence[str]], Cubin]"
) -> "Cubin":
    """The PTX assembled; a text of the program that the assembler refuses is named by its line."""
    from tilefold.compiler.machine.assemble import AssembleError, inline_refusal
    from tilefold.dialects.ptx import CustomOp, InlineOp

    try:
        return assemble(ptx, target, program.assembler)
    except AssembleError as error:
        ops = list(program.reached("instr", target).walk())
        if "known instruction" in error.log and (names := {op.mnemonic() for op in ops if isinstance(op, CustomOp)}):
            text = f"the assembler lacks instructions that packages define: {', '.join(sorted(names))}"
            raise AssembleError(Code.ASSEMBLE_UNAVAILABLE, text, "--emit=ptx prints the PTX") from error
        texts = [op for op in ops if isinstance(op, InlineOp)]
        with program.explaining():
            raise inline_refusal(error, ptx, target, texts) from error


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "-"


def _files() -> Iterator[str]:
    """Name, size and time of each of tilefold's files."""
    folders = {str(Path(__file__).parent)}
    for name in _COMPILER:
        folders.update(import_module(f"tilefold.{name}").__path__)
    for folder in folders:
        if os.path.isdir(folder):  # those of a wheel that is not unpacked are its version's
            yield from _files_in(folder)


def _files_in(folder: str) -> Iterator[str]:
    for entry in os.scandir(folder):
        if entry.name.endswith(".py"):
            status = entry.stat()
            yield f"{entry.path} {status.st_size} {status.st_mtime_ns}"
        elif entry.is_dir() and entry.name != "__pycache__":
            yield from _files_in(entry.path)


def _extensions() -> Iterator[str]:
    """The packages that define atoms, with their versions."""
    from importlib.metadata import entry_points

    from tilefold.layout.atoms.entry_points import GROUP

    for point in entry_points(group=GROUP):
        yield f"{point.name}={point.value} {'' if point.dist is None else point.dist.version}"


def remarks_of_assembler(program: Program, target: "Target") -> "tuple[Remark, ...]":
    """The assembler's remarks, which it makes only on kernels for warpgroups."""
    from tilefold.compiler.reports.remarks import Remark, is_for_warpgroups

    entries = program.entries(target)
    if not any(map(is_for_warpgroups, entries)):
        return ()
    from tilefold.compiler.machine.assemble import AssembleError
    from tilefold.compiler.reports.assembler_remarks import assembler_remarks

    try:
        return assembler_remarks(*with_lines(program, target), entries, program.source)
    except AssembleError as error:
        if error.code != Code.ASSEMBLE_UNAVAILABLE:
            raise
        return (Remark(None, "cubin", "assembler", f"not asked, since {error.message}"),)


def fragments_in_memory(program: Program, target: "Target") -> "dict[str, list[LocalFragment]]":
    """The fragments of each kernel that lie in local memory in its PTX. Raises the errors of `Program.ptx`."""
    from tilefold.compiler.machine.nvptx import stack_names
    from tilefold.compiler.reports.remarks import fragments_in_memory, has_stack
    from tilefold.dialects.ptx import LocalAllocOp

    entries = program.entries(target)
    has_fragments = any(isinstance(op, LocalAllocOp) for entry in entries for op in entry.walk())
    if not has_fragments or not has_stack(program.ptx(target)):
        return {}
    return fragments_in_memory(entries, stack_names(program.llvm(target), target))


def remarks_of_fragments(program: Program, target: "Target") -> "tuple[Remark, ...]":
    """The reasons that fragments lie in local memory. The program is compiled to PTX for them."""
    from tilefold.compiler.reports.remarks import Remark, fragment_remarks

    try:
        found = fragments_in_memory(program, target)
    except TilefoldError as error:
        return (Remark(None, "ptx", "fragment", f"local memory is not known, since {error.message}"),)
    return fragment_remarks([fragment for fragments in found.values() for fragment in fragments], program.source)


def report(program: Program, target: "Target") -> str:
    """The text of `Program.report`."""
    from tilefold.compiler.reports.assembler_remarks import assembler_remarks
    from tilefold.compiler.reports.kernel_report import make_report, print_report

    built = program.build(target)
    stream = StringIO()
    cubin, entries = program.cubin(target), program.entries(target)
    print_report(make_report(built.ptx, cubin, target, entries), stream)
    for remark in remarks_of_fragments(program, target):
        print(f"local memory: {remark.place}: {remark.text}", file=stream)
    for remark in assembler_remarks(cubin.log, built.ptx, entries, program.source):
        print(f"lost speed: {remark.place}: {remark.text}", file=stream)
    return stream.getvalue()
