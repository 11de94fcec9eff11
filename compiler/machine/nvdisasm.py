# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Machine code as text, by the program nvdisasm from the package nvidia-cuda-nvdisasm, a toolkit, or PATH."""

import os
import shlex
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

from ...base.errors import Code
from ...base.limits import check_deadline, seconds_left
from .assemble import AssembleError
from .ptxas import programs_of

PACKAGE = "nvidia-cuda-nvdisasm"
"""The package that brings nvdisasm."""
TIMEOUT = 120.0
"""Seconds that nvdisasm may take."""
_NAME = "nvdisasm.exe" if os.name == "nt" else "nvdisasm"


def find_nvdisasm(cuda_home: str = "") -> str:
    """The path of nvdisasm. AssembleError (E2302) where there is none."""
    path = next(programs_of(PACKAGE, _NAME, cuda_home), None)
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
        raise AssembleError(Code.ASSEMBLE_UNAVAILABLE, f"nvdisasm rejects the machine code: {reason[0]}")
    return process.stdout
