# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Settings: the one place that reads environment variables."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ..base.errors import Code, TilefoldError
from ..base.target import Target, known_targets

CACHE_DIR = "TILEFOLD_CACHE_DIR"
"""The folder of the cache of compiled kernels; by default that of the user for caches."""
CACHE_LIMIT = "TILEFOLD_CACHE_LIMIT"
"""How large the cache may grow, in MiB; 0 turns it off."""
PTXAS = "TILEFOLD_PTXAS"
"""The program ptxas that makes machine code of kernels that nvJitLink cannot assemble."""
ASSEMBLER = "TILEFOLD_ASSEMBLER"
"""`ptxas` makes all machine code by ptxas, also of kernels that nvJitLink or the driver would assemble."""
ALLOW_SLOWER = "TILEFOLD_ALLOW_SLOWER"
"""Whether kernels are accepted that the assembler makes slower than they are written: 1 or 0."""
LINE_INFO = "TILEFOLD_LINE_INFO"
"""Whether compiled kernels name the lines of their source, for profilers and debuggers: 1 or 0."""
ASSERTIONS = "TILEFOLD_ASSERTIONS"
"""Whether kernels on a GPU check their assertions: 1 or 0."""
SIM_PROCESSES = "TILEFOLD_SIM_PROCESSES"
"""How many processes the simulator may use for the blocks of a launch; by default as many as there are cores."""
SIM_RESIDENT = "TILEFOLD_SIM_RESIDENT"
"""How many blocks the simulator runs at the same time where a launch in Python does not say."""
SIM_RACES = "TILEFOLD_SIM_RACES"
"""Whether the simulator looks for data races where a launch in Python does not say: 1 or 0."""
SIM_FENCES = "TILEFOLD_SIM_TCGEN05_FENCES"
"""Whether the simulator wants fences of tcgen05 where threads synchronise, as the PTX ISA does: 1 or 0."""
SIM_PROGRESS = "TILEFOLD_SIM_PROGRESS"
"""Whether the simulator shows how far a long launch is: 1 or 0."""
PROGRAM_ARCH = "CUTE_DSL_ARCH"
"""The target that CuTe programs are to choose their kernels for, where it is not that of the GPU."""
TRACEBACK = "TILEFOLD_TRACEBACK"
"""Whether programs show the lines of tilefold that led to an error: 1 or 0."""

_DEFAULT_LIMIT_MIB = 1024


@dataclass(frozen=True, slots=True)
class PtxasSettings:
    """The places to look for ptxas: the program that the user names, and the folder of a CUDA toolkit; both may be
    empty. `always` says that it makes all machine code.
    """

    program: str
    cuda_home: str
    always: bool


def given_settings() -> Mapping[str, str]:
    """The settings of tilefold that this process has been given, for a process that is to do the same."""
    return {name: value for name, value in sorted(os.environ.items()) if name.startswith("TILEFOLD_")}


def ptxas_settings() -> PtxasSettings:
    """The settings of this process. TilefoldError (E4003) for an unknown assembler."""
    assembler = os.environ.get(ASSEMBLER, "")
    if assembler not in ("", "ptxas"):
        raise TilefoldError(
            Code.CLI_VALUE, f"{ASSEMBLER}={assembler[:40]} is not an assembler", "it may be ptxas, or unset"
        )
    program, cuda_home = os.path.expanduser(os.environ.get(PTXAS, "")), os.environ.get("CUDA_HOME", "")
    return PtxasSettings(program, cuda_home, assembler == "ptxas")


def allows_slower() -> bool:
    """Whether kernels are accepted that the assembler makes slower. TilefoldError (E4003) for a value other than 0 or
    1."""
    return _switch(ALLOW_SLOWER, "0", "1 accepts such kernels")


def writes_lines() -> bool:
    """Whether compiled kernels name the lines of their source. TilefoldError (E4003) for a value other than 0 or 1."""
    return _switch(LINE_INFO, "1", "0 writes kernels without their lines")


def keeps_assertions() -> bool:
    """Whether kernels on a GPU check their assertions. TilefoldError (E4003) for a value other than 0 or 1."""
    return _switch(ASSERTIONS, "0", "1 has kernels on a GPU check their assertions")


def looks_for_races() -> bool:
    """Whether the simulator looks for data races. TilefoldError (E4003) for a value other than 0 or 1."""
    return _switch(SIM_RACES, "1", "0 does not look for races")


def wants_tensor_fences() -> bool:
    """Whether uses of tensor memory need fences around synchronisations of threads; 0 lets any synchronisation order
    them, as many programs assume. TilefoldError (E4003) for a value other than 0 or 1.
    """
    return _switch(SIM_FENCES, "1", "0 lets any synchronisation order uses of tensor memory")


def shows_progress() -> bool:
    """Whether the simulator shows how far a long launch is. TilefoldError (E4003) for a value other than 0 or 1."""
    return _switch(SIM_PROGRESS, "1", "0 shows nothing")


def program_target() -> Target | None:
    """The target that CuTe programs are to choose their kernels for; None for that of the GPU. TilefoldError (E4003)
    for an unknown one.
    """
    if not (wished := os.environ.get(PROGRAM_ARCH, "")):
        return None
    if wished not in known_targets():
        hint = f"known are {', '.join(known_targets())}"
        raise TilefoldError(Code.CLI_VALUE, f"{PROGRAM_ARCH}={wished[:40]} is not a target", hint)
    return Target(wished)


def shows_tracebacks() -> bool:
    """Whether programs show the lines of tilefold that led to an error. TilefoldError (E4003) for a value other than 0
    or 1.
    """
    return _switch(TRACEBACK, "0", "1 shows all lines")


def simulator_processes() -> int | None:
    """How many processes the simulator may use; None if it chooses. TilefoldError (E4003) for no number above 0."""
    return _number(SIM_PROCESSES, 1024, "1 uses one")


def resident_blocks() -> int:
    """How many blocks the simulator runs at the same time, by default 1: programs whose blocks wait for each other
    without a cooperative launch need as many as wait. TilefoldError (E4003) for no number above 0.
    """
    return _number(SIM_RESIDENT, 1 << 16, "1 runs one after the other") or 1


def _number(name: str, most: int, hint: str) -> int | None:
    text = os.environ.get(name, "")
    if text and (not text.isdecimal() or not 0 < int(text[:9]) <= most):
        raise TilefoldError(Code.CLI_VALUE, f"{name}={text[:40]} is not a number from 1 to {most}", hint)
    return int(text) if text else None


def _switch(name: str, default: str, hint: str) -> bool:
    text = os.environ.get(name, "") or default
    if text not in ("0", "1"):
        raise TilefoldError(Code.CLI_VALUE, f"{name}={text[:40]} is neither 0 nor 1", hint)
    return text == "1"


@dataclass(frozen=True, slots=True)
class CacheSettings:
    """The folder of the cache of compiled kernels, and the bytes that it may hold; 0 if it is off."""

    folder: Path
    limit: int


def read_cache_settings() -> CacheSettings:
    """The settings of this process: the cache is off for a user who has no home. TilefoldError (E4003) for a limit that
    is not a number.
    """
    text = os.environ.get(CACHE_LIMIT, "") or str(_DEFAULT_LIMIT_MIB)
    if not text.isdecimal() or len(text) > 9:
        raise TilefoldError(
            Code.CLI_VALUE, f"{CACHE_LIMIT}={text[:40]} is not a number of MiB", "0 turns the cache off"
        )
    folder = os.path.expanduser(os.environ.get(CACHE_DIR, ""))
    path = Path(folder) if folder else _default_folder()
    return CacheSettings(path, int(text) << 20 if folder or path.is_absolute() else 0)


def _default_folder() -> Path:
    """The user's folder for caches; one that is not absolute for a user who has no home."""
    from platformdirs import user_cache_path

    try:
        return user_cache_path("tilefold", appauthor=False)
    except RuntimeError:  # so newer versions say that there is no home
        return Path("~/.cache/tilefold")
