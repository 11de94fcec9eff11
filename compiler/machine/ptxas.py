# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PTX to machine code by the program ptxas, for kernels that nvJitLink cannot assemble.

nvJitLink makes relocatable code, from which `setmaxnreg` is dropped. ptxas and the driver make whole programs.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from tempfile import TemporaryDirectory

from ...base.errors import Code
from ...base.limits import check_deadline, seconds_left
from ...base.target import Target
from .assemble import AssembleError, Cubin, cubin_of, refusal

PACKAGE = "nvidia-cuda-nvcc"
"""The package that brings ptxas."""
TIMEOUT = 300.0
"""Seconds that ptxas may take."""

_NAME = "ptxas.exe" if os.name == "nt" else "ptxas"
_WHOLE_PROGRAM = re.compile(r"\bsetmaxnreg\.(?:inc|dec)\.")
_LEVEL = re.compile(r"-O[0-3]")
_VERSION = re.compile(r"\bV(\d+(?:\.\d+)+)")


def is_level(option: str) -> bool:
    """Whether an option is a level of optimisation, which nvJitLink has, too; others it takes without a word."""
    return _LEVEL.fullmatch(option) is not None


def needs_whole_program(ptx: str) -> bool:
    """Whether nvJitLink would drop instructions of this PTX."""
    return _WHOLE_PROGRAM.search(ptx) is not None


@dataclass(frozen=True, slots=True)
class Ptxas:
    """The program ptxas: its path, and its version such as 13.0.88."""

    path: str
    version: str

    def assemble(self, ptx: str, target: Target, options: Sequence[str] = ()) -> Cubin:
        """Assembles PTX for the target, with more options. AssembleError if ptxas refuses the text or an option, or
        takes too long.
        """
        with TemporaryDirectory(prefix="tilefold-") as folder:
            Path(folder, "kernel.ptx").write_text(ptx, encoding="utf-8")
            command = [self.path, "-v", f"-arch={target.arch}", *options, "-o", "kernel.cubin", "kernel.ptx"]
            process = _run(command, folder)
            if process.returncode != 0:
                hint = "install a newer ptxas" if "Unsupported .version" in process.stderr else ""
                if "ption" in process.stderr and options:  # an option that it does not know, or a wrong value of one
                    hint = f"the options {' '.join(options)} must be among those that `{_NAME} --help` lists"
                raise refusal(target, process.stderr, hint)
            return cubin_of(Path(folder, "kernel.cubin").read_bytes(), process.stderr)


def find_ptxas(program: str = "", cuda_home: str = "") -> Ptxas:
    """The ptxas named `program`, else that of the package nvidia-cuda-nvcc, of the folder `cuda_home`, or of PATH.

    AssembleError (E2302) where there is none, or `program` cannot be run.
    """
    return _start(program or next(programs_of(PACKAGE, _NAME, cuda_home), ""), bool(program))


def programs_of(package: str, name: str, cuda_home: str) -> Iterator[str]:
    """The paths of a program of CUDA: in a package of Python, in the folder `cuda_home`, and in PATH."""
    try:
        files = distribution(package).files or ()
    except PackageNotFoundError:
        files = ()
    paths = [str(file.locate()) for file in files if file.name == name and file.parent.name == "bin"]
    paths += [os.path.join(cuda_home, "bin", name)] if cuda_home else []
    yield from (path for path in paths if os.access(path, os.X_OK))
    if (path := shutil.which(name)) is not None:
        yield path


@cache
def _start(path: str, is_named: bool) -> Ptxas:
    """The program at a path, with the version that it prints."""
    hint = f"`pip install {PACKAGE}`, or set TILEFOLD_PTXAS to the program; launches on a GPU and --emit ptx need none"
    if not path:
        message = "ptxas, which makes machine code of kernels with setmaxnreg, is not installed"
        raise AssembleError(Code.ASSEMBLE_UNAVAILABLE, message, hint)
    try:
        version = _VERSION.search(_run([path, "--version"]).stdout)
    except OSError as error:
        version, reason = None, error.strerror
    else:
        reason = "it does not print its version"
    if version is None:
        named = "TILEFOLD_PTXAS names " if is_named else ""
        raise AssembleError(Code.ASSEMBLE_UNAVAILABLE, f"{named}{path}, which is not ptxas: {reason}", hint)
    return Ptxas(path, version[1])


def _run(command: list[str], folder: str | None = None) -> "subprocess.CompletedProcess[str]":
    try:
        return subprocess.run(
            command,
            cwd=folder,
            capture_output=True,
            timeout=seconds_left(TIMEOUT),
            check=False,
            encoding="utf-8",
            errors="replace",
        )
    except subprocess.TimeoutExpired as error:
        check_deadline("in ptxas")
        message = f"ptxas was stopped after {TIMEOUT:g} seconds"
        raise AssembleError(Code.LLVM_TIMEOUT, message, "unroll less, or split the kernel") from error
