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
_MATH = """\
#pragma once
#ifndef INFINITY
#define INFINITY __int_as_float(0x7f800000)
#endif
#ifndef NAN
#define NAN __int_as_float(0x7fffffff)
#endif
#ifndef M_PI
#define M_PI 3.14159265358979323846
#endif
"""
_FIRST = "tilefold_first.h"
"""The name of the header that comes before the text, as nvcc includes `cuda_runtime.h`, and with it `math.h`. For NVRTC
a toolkit's `cuda_runtime.h` has none of the names of `math.h`.
"""
_FLOAT = """\
#pragma once
#define FLT_MAX 3.402823466e+38F
#define FLT_MIN 1.175494351e-38F
#define FLT_EPSILON 1.192092896e-07F
#define DBL_MAX 1.7976931348623157e+308
"""
_LIMITS = """\
#pragma once
#define INT_MAX 2147483647
#define INT_MIN (-INT_MAX - 1)
#define UINT_MAX 4294967295U
"""
_ASSERT = """\
#pragma once
#ifdef NDEBUG
#define assert(holds) ((void)0)
#else
#define assert(holds) ((holds) ? (void)0 : __assertfail(#holds, __FILE__, __LINE__, __func__, 1))
#endif
"""
_INTEGERS = "#pragma once\n" + "".join(
    f"typedef signed {type} int{bits}_t;\ntypedef unsigned {type} uint{bits}_t;\n"
    for bits, type in ((8, "char"), (16, "short"), (32, "int"), (64, "long long"))
)
_HEADERS = {
    **dict.fromkeys(
        ("device_launch_parameters.h", "stdio.h", "cstdio", "stdlib.h", "cstdlib", "string.h", "cstring", "cstddef"), ""
    ),
    **dict.fromkeys(("assert.h", "cassert"), _ASSERT),
    **dict.fromkeys(("cuda_runtime.h", "math.h", "cmath"), _MATH),
    **dict.fromkeys(("float.h", "cfloat"), _FLOAT),
    **dict.fromkeys(("limits.h", "climits"), _LIMITS),
    **dict.fromkeys(("stdint.h", "cstdint"), _INTEGERS),
}
"""The names that kernels use from headers that nvcc includes by itself or that come with a compiler for the host. NVRTC
has none; each stands in where no folder has the header.
"""


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
    options = [f"-arch={arch.replace('sm_', 'compute_')}", "-lineinfo", "-default-device"]
    if not any(option.lstrip("-").startswith("std=") for option in more):
        options.append("-std=c++17")
    options += [f"-I{folder}" for folder in folders]
    options += [f"-D{name}={value}" for name, value in macros.items()] + list(more)
    if "-G" in more:
        options.remove("-lineinfo")
    given = {name: body for name, body in _HEADERS.items() if not any((folder / name).exists() for folder in folders)}
    given[_FIRST] = _MATH
    options.append(f"--pre-include={_FIRST}")
    names, bodies = [name.encode() for name in given], [body.encode() for body in given.values()]
    status, program = nvrtc.nvrtcCreateProgram(text.encode(), file.encode(), len(names), bodies, names)
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
        return TilefoldError(Code.FOREIGN_REFUSED, f"NVRTC rejected {file}: {lines[0]}")
    text = f"{found['file']}:{found['line']}: NVRTC: {found['text']}"
    hint = "NVRTC compiles only device code: move main and launches to another file" if "<<<" in log else ""
    if "cannot open source file" in found["text"]:
        hint = "`pip install nvidia-cuda-runtime nvidia-cuda-cccl` installs CUDA's headers"
    return TilefoldError(Code.FOREIGN_REFUSED, text, hint)


def _headers(cuda_home: str) -> list[Path]:
    """The folders of CUDA's headers, of the packages nvidia-cuda-runtime and nvidia-cuda-cccl, and of a toolkit."""
    roots = [Path(get_path("purelib"), "nvidia", name) for name in ("cu13", "cuda_runtime", "cuda_cccl")]
    roots += [Path(cuda_home)] if cuda_home else []
    folders = [folder for root in roots for folder in (root / "include", root / "include" / "cccl")]
    return [folder for folder in folders if folder.is_dir()]
