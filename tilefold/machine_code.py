# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Machine code of programs, made once: compiled programs come from the cache on disk.

The key covers everything that the result depends on: the program's text, the target, and the versions of tilefold and
of its compilers. LLVM comes with llvmlite, so llvmlite's version stands for both.
"""

import os
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

from tilefold.runtime.compiled.artifact import artifact_of
from tilefold.runtime.compiled.build import Build
from tilefold.runtime.compiled.store import digest
from tilefold.version import VERSION

if TYPE_CHECKING:
    from tilefold.base.target import Target
    from tilefold.compiler.machine.assemble import Cubin
    from tilefold.lowering import Program

_TOOLS = ("xdsl", "llvmlite", "nvidia-nvjitlink", "cuda-bindings")
_COMPILER = ("layout", "dialects", "passes", "compiler", "runtime")


def build(program: "Program", target: "Target") -> Build:
    """A program as machine code for a target, from the program's cache where it has one and knows it.

    Raises TilefoldError where a pass, LLVM or the assembler refuses the program; of that nothing is kept.
    """
    store = program.cache
    if store is None:
        return _compiled(program, target)
    key = _key(program, target)
    kept = _kept(store.get(key))
    if kept is not None:
        return kept
    with store.making(key):
        kept = _kept(store.get(key))
        if kept is None:
            kept = _compiled(program, target)
            store.put(key, kept.to_bytes())
    return kept


def kept(program: "Program", target: "Target") -> Build | None:
    """A program's machine code for a target, if the program's cache has it."""
    return None if program.cache is None else _kept(program.cache.get(_key(program, target)))


def keep(program: "Program", target: "Target", made: Build) -> None:
    """Puts machine code that was made elsewhere into the program's cache, where it has one that lacks it."""
    if program.cache is not None and kept(program, target) is None:
        program.cache.put(_key(program, target), made.to_bytes())


def _key(program: "Program", target: "Target") -> str:
    return digest(program.identity, target.arch, toolchain())


@cache
def toolchain() -> str:
    """The versions of all that compiles: of the packages, and of tilefold's own files, which a checkout changes without
    a new version.
    """
    versions = [f"{name} {_version(name)}" for name in _TOOLS]
    return "\n".join([f"tilefold {VERSION}", *versions, *sorted({*_files()}), *sorted(_extensions())])


def _kept(data: bytes | None) -> Build | None:
    try:
        return None if data is None else Build.from_bytes(data)
    except ValueError:
        return None  # intact, but written by another version


def _compiled(program: "Program", target: "Target") -> Build:
    ptx = program.ptx(target)
    cubin = _assembled(program, ptx, target)
    artifacts = tuple(artifact_of(entry, cubin.code, target) for entry in program.entries(target))
    return Build(ptx, cubin.code, cubin.log, artifacts)


def _assembled(program: "Program", ptx: str, target: "Target") -> "Cubin":
    from tilefold.compiler.machine.assemble import AssembleError, assemble
    from tilefold.compiler.machine.refused_text import refusal
    from tilefold.dialects.ptx import InlineOp

    try:
        return assemble(ptx, target)
    except AssembleError as error:
        texts = [op for op in program.reached("instr", target).walk() if isinstance(op, InlineOp)]
        with program.explaining():
            raise refusal(error, ptx, target, texts) from error


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

    from tilefold.layout.atoms.installed import GROUP

    for point in entry_points(group=GROUP):
        yield f"{point.name}={point.value} {'' if point.dist is None else point.dist.version}"
