# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""CUDA C++ to PTX by NVRTC, in process and without a GPU."""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from sysconfig import get_path
from typing import Any

from ...base.errors import Code, TilefoldError
from .assemble import load_binding

_ERROR = re.compile(r"^(?P<file>.+?)\((?P<line>\d+)\): (?:catastrophic )?error: (?P<text>.*)$", re.MULTILINE)


@cache
def load_nvrtc() -> Any:
    """The binding of NVRTC. TilefoldError (E2305) if it is missing."""
    hint = "`pip install 'tilefold[cuda-c]'` installs it on Linux and Windows; it needs no GPU"
    return load_binding("nvrtc", "nvrtcVersion", "NVRTC, which compiles CUDA C++,", hint, Code.FOREIGN_UNAVAILABLE)


def compile_cuda(
    text: str, file: str, arch: str, macros: Mapping[str, str], cuda_home: str = "", more: Sequence[str] = ()
) -> str:
    """The PTX of CUDA C++ for an architecture, such as `sm_90a`, with the lines of its source. `file` is where the text
    comes from: headers beside it are found, as are those of the packages of CUDA and of the toolkit in `cuda_home`.
    `more` are options of NVRTC, such as `-G`, which keeps dead stores.

    TilefoldError (E2304) with NVRTC's first message where it refuses the text, (E2305) where it is not installed.
    """
    nvrtc = load_nvrtc()
    folders = [Path(file).absolute().parent, *_headers(cuda_home)]
    options = [f"-arch={arch.replace('sm_', 'compute_')}", "-lineinfo", "-std=c++17", "-default-device"]
    options += [f"-I{folder}" for folder in folders]
    options += [f"-D{name}={value}" for name, value in macros.items()] + list(more)
    if "-G" in more:
        options.remove("-lineinfo")
    status, program = nvrtc.nvrtcCreateProgram(text.encode(), file.encode(), 0, [], [])
    _check(status, "the program cannot be made")
    try:
        (status,) = nvrtc.nvrtcCompileProgram(program, len(options), [option.encode() for option in options])
        if status.value:
            raise _refusal(_read(nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog, program), file)
        return _read(nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX, program)
    finally:
        nvrtc.nvrtcDestroyProgram(program)


def _check(status: Any, problem: str) -> None:
    if status.value:
        raise TilefoldError(Code.FOREIGN_REFUSED, f"NVRTC: {problem}: {status.name}")


def _read(size_of: Any, read: Any, program: Any) -> str:
    status, size = size_of(program)
    _check(status, "its results cannot be read")
    buffer = b" " * size
    (status,) = read(program, buffer)
    _check(status, "its results cannot be read")
    return buffer.rstrip(b"\0 ").decode("utf-8", "replace")


def _refusal(log: str, file: str) -> TilefoldError:
    found = _ERROR.search(log)
    if found is None:
        lines = log.splitlines() or ["it gives no reason"]
        return TilefoldError(Code.FOREIGN_REFUSED, f"NVRTC refused {file}: {lines[0]}")
    text = f"{found['file']}:{found['line']}: NVRTC: {found['text']}"
    hint = "NVRTC compiles code of the device alone: move main and launches to another file" if "<<<" in log else ""
    return TilefoldError(Code.FOREIGN_REFUSED, text, hint)


def _headers(cuda_home: str) -> list[Path]:
    """The folders of CUDA's headers, of the packages nvidia-cuda-runtime and nvidia-cuda-cccl, and of a toolkit."""
    roots = [Path(get_path("purelib"), "nvidia", name) for name in ("cu13", "cuda_runtime", "cuda_cccl")]
    roots += [Path(cuda_home)] if cuda_home else []
    folders = [folder for root in roots for folder in (root / "include", root / "include" / "cccl")]
    return [folder for folder in folders if folder.is_dir()]
