# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""OpenCL C as CUDA C++, as far as small kernels need it; `shims/opencl.h` has the functions."""

import re

_ADDRESS = re.compile(r"\b(?:__)?(?:global|private)\b|\b(?:__)?constant\b(?=[^;{=]*[,)])")
_LOCAL = re.compile(r"\b(?:__)?local\b(?P<rest>\s+(?:const\s+|volatile\s+|unsigned\s+|struct\s+)*\w+\s*)(?P<star>\*?)")
_KERNEL = re.compile(r"\b(?:__)?kernel\b(?:\s*__attribute__\s*\(\(.*?\)\))?")
_CAST = re.compile(r"\(\s*((?:u?(?:char|short|int|long)|float|double)[234])\s*\)\s*\(")
_ELEMENT = re.compile(r"\.s([0123])\b")
_LOCAL_PARAMETER = re.compile(
    r"\b(?:__)?local\s+(?:const\s+|volatile\s+)*(?P<type>(?:unsigned\s+)?\w+)\s*\*\s*(?:restrict\s+|__restrict\s+)?(?P<name>\w+)"
)
LOCAL_ELEMENTS = 512
"""The elements of an array in local memory that a kernel takes as an argument."""


def as_cuda(text: str) -> str:
    """A program of OpenCL C in CUDA C++: address spaces, kernels, vectors' casts; an argument in local memory becomes
    an array of the kernel.
    """
    text = _local_arguments(text)
    text = _LOCAL.sub(lambda m: f"{'' if m['star'] else '__shared__ '}{m['rest'].lstrip()}{m['star']}", text)
    text = _KERNEL.sub("__global__", text)
    text = re.sub(r"^(\s*)(?:__)?constant\b", r"\1__constant__", text, flags=re.MULTILINE)
    text = re.sub(r"\b(?:__)?(?:global|private|constant)\b", "", text)
    text = _CAST.sub(r"make_\1(", text)
    return _ELEMENT.sub(lambda m: "." + "xyzw"[int(m[1])], text)


def _local_arguments(text: str) -> str:
    """Arrays in local memory that kernels take become arrays of their bodies."""
    begin = 0
    while (kernel := re.compile(r"\b(?:__)?kernel\b[^({;]*?\bvoid\b[^({;]*\(").search(text, begin)) is not None:
        end = _closing(text, kernel.end() - 1)
        body = text.find("{", end)
        parameters = [p.strip() for p in text[kernel.end() : end].split(",")]
        local = [m for p in parameters if (m := _LOCAL_PARAMETER.fullmatch(p)) is not None]
        kept = [p for p in parameters if _LOCAL_PARAMETER.fullmatch(p) is None]
        arrays = "".join(
            f" __shared__ {m['type']} {m['name']}[{LOCAL_ELEMENTS}]; suite_fill({m['name']});" for m in local
        )
        semicolon = text.find(";", end)
        if body < 0 or 0 <= semicolon < body:
            arrays, body = "", end
        text = f"{text[: kernel.end()]}{', '.join(kept)}{text[end : body + 1]}{arrays}{text[body + 1 :]}"
        begin = kernel.end()
    return text


def _closing(text: str, opening: int) -> int:
    """The place of the parenthesis that closes one."""
    depth = 0
    for place in range(opening, len(text)):
        depth += {"(": 1, ")": -1}.get(text[place], 0)
        if depth == 0:
            return place
    return len(text)
