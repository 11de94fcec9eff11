# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Machine code as text, by the program nvdisasm from the package nvidia-cuda-nvdisasm, a toolkit, or PATH."""

import os
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from tempfile import TemporaryDirectory

from ...base.errors import Code
from ...base.limits import check_deadline, seconds_left
from .assemble import AssembleError

PACKAGE = "nvidia-cuda-nvdisasm"
"""The package that brings nvdisasm."""
TIMEOUT = 120.0
"""Seconds that nvdisasm may take."""
_NAME = "nvdisasm.exe" if os.name == "nt" else "nvdisasm"


def find_nvdisasm(cuda_home: str = "") -> str:
    """The path of nvdisasm. AssembleError (E2302) where there is none."""
    path = next(_candidates(cuda_home), None)
    if path is None:
        message = "nvdisasm, which shows machine code, is not installed"
        raise AssembleError(Code.ASSEMBLE_UNAVAILABLE, message, f"`pip install {PACKAGE}`")
    return path


def disassemble(cubin: bytes, cuda_home: str = "", options: str = "-g -c") -> str:
    """Machine code as nvdisasm prints it, by default with the lines of the source that the code names.

    AssembleError (E2302) where nvdisasm is missing, does not know the machine code, or takes too long.
    """
    with TemporaryDirectory(prefix="tilefold-") as folder:
        path = Path(folder, "kernel.cubin")
        path.write_bytes(cubin)
        command = [find_nvdisasm(cuda_home), *shlex.split(options), str(path)]
        try:
            seconds = seconds_left(TIMEOUT)
            process = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            check_deadline("in nvdisasm")
            raise AssembleError(Code.ASSEMBLE_UNAVAILABLE, f"nvdisasm does not run: {error}") from error
    if process.returncode != 0:
        reason = process.stderr.strip().splitlines()[-1:] or ["it gives no reason"]
        raise AssembleError(Code.ASSEMBLE_UNAVAILABLE, f"nvdisasm refuses the machine code: {reason[0]}")
    return process.stdout


def _candidates(cuda_home: str) -> Iterator[str]:
    try:
        files = distribution(PACKAGE).files or ()
    except PackageNotFoundError:
        files = ()
    paths = [str(file.locate()) for file in files if file.name == _NAME]
    paths += [os.path.join(cuda_home, "bin", _NAME)] if cuda_home else []
    yield from (path for path in paths if os.access(path, os.X_OK))
    if (path := shutil.which(_NAME)) is not None:
        yield path
