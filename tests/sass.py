# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Machine code as text, by nvdisasm of the package nvidia-cuda-nvdisasm, and the instructions in it."""

import re
import subprocess
from collections import Counter
from functools import cache
from importlib.metadata import distribution
from pathlib import Path
from tempfile import TemporaryDirectory

_INSTRUCTION = re.compile(r"^\s+/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][\w.]*)", re.MULTILINE)
_FUNCTION = re.compile(r"^\.text\.(\S+):$", re.MULTILINE)


@cache
def _nvdisasm() -> str:
    files = distribution("nvidia-cuda-nvdisasm").files or ()
    return next(str(file.locate()) for file in files if file.stem == "nvdisasm")


def disassembled(cubin: bytes) -> str:
    """Machine code as nvdisasm prints it."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "kernel.cubin")
        path.write_bytes(cubin)
        done = subprocess.run([_nvdisasm(), "-c", str(path)], capture_output=True, text=True, timeout=120, check=True)
        return done.stdout


def instructions(cubin: bytes) -> dict[str, Counter[str]]:
    """For each kernel, how often each instruction stands in its machine code, by name without what follows a dot."""
    parts = _FUNCTION.split(disassembled(cubin))[1:]
    return {
        name: Counter(mnemonic.partition(".")[0] for mnemonic in _INSTRUCTION.findall(text))
        for name, text in zip(parts[::2], parts[1::2], strict=True)
    }
