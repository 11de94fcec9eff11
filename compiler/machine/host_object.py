# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Object files for this machine's processor, which programs in C link: a function that computes numbers, and data.

The function is a kernel of one thread, whose text for NVPTX is made for the processor: its parameters are those of a
launch, and all its state spaces are the machine's memory.
"""

import re
import shutil
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

from ...base.errors import Code, TilefoldError
from ...base.held_signals import holding_signals
from .nvptx import STARTING, bindings

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


_TARGET = re.compile(r"^target (?:datalayout|triple) = .*\n", re.MULTILINE)
_OF_A_GPU = re.compile(r"@llvm\.nvvm\.[\w.]+|\basm\b|^@.* addrspace\(", re.MULTILINE)


def make_object(kernel: str, symbol: str, data: bytes) -> bytes:
    """An object file with the function of a kernel, whose LLVM IR is given, and with `data` as the bytes `symbol`, at a
    multiple of 64.

    TilefoldError (E0213) for a kernel that does more than to compute numbers.
    """
    escaped = "".join(f"\\{byte:02x}" for byte in data)
    return _compile(f'{as_host_function(kernel)}\n@{symbol} = constant [{len(data)} x i8] c"{escaped}", align 64\n')


def as_host_function(kernel: str) -> str:
    """The LLVM IR of a kernel as that of a function for any machine.

    TilefoldError (E0213) for a kernel that does more than to compute numbers.
    """
    if (instruction := _OF_A_GPU.search(kernel)) is not None:
        problem = f"host processors do not support {instruction[0]}"
        raise TilefoldError(Code.BAD_ARGUMENT, problem, "compute this number in the kernel")
    return _TARGET.sub("", kernel).replace("define ptx_kernel ", "define ").replace(" addrspace(1)", "")


@holding_signals
def _compile(text: str) -> bytes:
    with STARTING:
        llvm = bindings()
    target = llvm.Target.from_default_triple()
    module = llvm.parse_assembly(f'target triple = "{target.triple}"\n{text}', llvm.create_context())
    machine = target.create_target_machine(opt=2, reloc="pic", codemodel="default")
    with module:
        return bytes(machine.emit_object(module))
