# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The system's C compiler, which joins a function in C with an object file."""

import shutil
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

from ...base.errors import Code, TilefoldError

_COMPILERS = ("cc", "gcc", "clang")


def join_with_c(made: bytes, source: str) -> bytes:
    """An object file with the contents of another one and a source in C (C11 and the attributes of GCC).

    Raises TilefoldError (E0213) where there is no C compiler, or it refuses the source.
    """
    compiler = next(filter(None, map(shutil.which, _COMPILERS)), None)
    if compiler is None:
        problem = "there is no C compiler, which functions of TVM FFI need"
        raise TilefoldError(Code.BAD_ARGUMENT, problem, f"install one of {', '.join(_COMPILERS)}")
    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "function.o").write_bytes(made)
        (folder / "call.c").write_text(source)
        flags = ["-std=gnu11", "-O2", "-fPIC", "-fvisibility=hidden", "-c"]
        for command in (
            [compiler, *flags, "call.c", "-o", "call.o"],
            [compiler, "-r", "-nostdlib", "call.o", "function.o", "-o", "joined.o"],
        ):
            run = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
            if run.returncode:
                first = next(iter(run.stderr.splitlines()), f"status {run.returncode}")
                raise TilefoldError(Code.BAD_ARGUMENT, f"{compiler}: {first}", "use GCC or Clang for Linux")
        return (folder / "joined.o").read_bytes()
