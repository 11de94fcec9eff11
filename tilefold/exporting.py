# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A kernel for programs in C and C++: machine code or PTX, a header that loads and launches it, and an example.

The header needs the CUDA driver API alone and is all static functions, each of which returns the driver's status.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tilefold.layout.errors import Code, TilefoldError
from tilefold.layout.inttuple import leaves
from tilefold.layout.unknown import Unknown
from tilefold.runtime.artifact import Artifact, Kind, Parameter

_C_TYPES: Mapping[Kind, str] = {
    Kind.POINTER: "CUdeviceptr", Kind.I1: "uint8_t", Kind.I8: "int8_t", Kind.I16: "int16_t", Kind.I32: "int32_t",
    Kind.I64: "int64_t", Kind.F16: "uint16_t", Kind.BF16: "uint16_t", Kind.F32: "float", Kind.F64: "double",
}  # fmt: skip
"""The types of parameters; the 16-bit floats are passed by their bits."""

_TAKEN = (
    "kernel grid_x grid_y grid_z stream arguments "  # of the header itself; then the words of C and C++
    "alignas alignof and asm auto bool break case catch char class const continue default delete do double else enum "
    "explicit export extern false float for friend goto if inline int long mutable namespace new not operator or "
    "private protected public register restrict return short signed sizeof static struct switch template this throw "
    "true try typedef typename union unsigned using virtual void volatile while xor"
)
_RESERVED = frozenset(_TAKEN.split())

_LICENCE = "/* Written by tilefold. This file may be used under any terms. */"


@dataclass(frozen=True, slots=True)
class Exported:
    """The files of an exported kernel: its code, the header, and an example of a program."""

    code: Path
    header: Path
    example: Path


def export(artifact: Artifact, ptx: str | None, folder: Path) -> Exported:
    """Writes a kernel to files in a folder: its machine code, or `ptx` where that is given.

    TilefoldError (E4002) where they cannot be written.
    """
    name = re.sub(r"\W", "_", artifact.kernel)
    code = folder / f"{name}.{'cubin' if ptx is None else 'ptx'}"
    files = Exported(code, folder / f"{name}.h", folder / f"{name}_example.c")
    content = artifact.code if ptx is None else ptx
    try:
        folder.mkdir(parents=True, exist_ok=True)
        files.code.write_bytes(content.encode() if isinstance(content, str) else content)
        files.header.write_text(header(artifact, name))
        files.example.write_text(example(artifact, name, code.name))
    except OSError as error:
        raise TilefoldError(Code.CLI_WRITE, f"{folder}: {error.strerror}") from None
    return files


def header(artifact: Artifact, name: str) -> str:
    """The header: `NAME_load` loads the code in the current context, `NAME_launch` queues the kernel."""
    arguments = [each for parameter in artifact.parameters for each in _arguments(parameter)]
    declared = "".join(f",\n    {type} {each}" for type, each in arguments)
    addresses = ", ".join(f"&{each}" for _, each in arguments) or "0"
    notes = "".join(f" *   {_note(parameter)}\n" for parameter in artifact.parameters)
    x, y, z = artifact.block
    shared = ""
    if artifact.dynamic_shared:
        shared = f"""    if (status == CUDA_SUCCESS)
        status = cuFuncSetAttribute(
            kernel->function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, {artifact.dynamic_shared});
"""
    guard = f"TILEFOLD_{name.upper()}_H"
    return f"""{_LICENCE}
#ifndef {guard}
#define {guard}

#include <cuda.h>
#include <stdint.h>

/* Kernel {artifact.kernel} for {artifact.target}: blocks of {x} x {y} x {z} threads, {artifact.dynamic_shared} bytes of
 * dynamic shared memory.
{notes} */

typedef struct {name}_kernel {{
    CUmodule module;
    CUfunction function;
}} {name}_kernel;

/* Loads the file with the code into the current context. */
static inline CUresult {name}_load({name}_kernel *kernel, const char *file)
{{
    CUresult status = cuModuleLoad(&kernel->module, file);
    if (status == CUDA_SUCCESS)
        status = cuModuleGetFunction(&kernel->function, kernel->module, "{artifact.kernel}");
{shared}    return status;
}}

/* Queues the kernel in a stream over a grid of blocks. */
static inline CUresult {name}_launch(
    const {name}_kernel *kernel,
    unsigned grid_x,
    unsigned grid_y,
    unsigned grid_z,
    CUstream stream{declared})
{{
    void *arguments[] = {{{addresses}}};
    return cuLaunchKernel(
        kernel->function, grid_x, grid_y, grid_z, {x}, {y}, {z}, {artifact.dynamic_shared}, stream, arguments, 0);
}}

static inline CUresult {name}_unload({name}_kernel *kernel)
{{
    return cuModuleUnload(kernel->module);
}}

#endif
"""


def example(artifact: Artifact, name: str, code: str) -> str:
    """A program that loads the kernel and says what it uses; where it would launch is marked."""
    arguments = "".join(f", {each}" for parameter in artifact.parameters for _, each in _arguments(parameter))
    return f"""{_LICENCE}
/* Build and run: nvcc -o {name}_example {name}_example.c -lcuda && ./{name}_example {code} */
#include <stdio.h>

#include "{name}.h"

static int failed(const char *what, CUresult status)
{{
    const char *text = 0;
    cuGetErrorString(status, &text);
    fprintf(stderr, "%s: %s\\n", what, text ? text : "unknown error");
    return 1;
}}

int main(int count, char **words)
{{
    {name}_kernel kernel;
    CUdevice device;
    CUcontext context;
    CUresult status;
    int registers = 0;

    if ((status = cuInit(0)) || (status = cuDeviceGet(&device, 0)) ||
        (status = cuDevicePrimaryCtxRetain(&context, device)) || (status = cuCtxSetCurrent(context)))
        return failed("no GPU", status);
    if ((status = {name}_load(&kernel, count > 1 ? words[1] : "{code}")))
        return failed("loading", status);
    if ((status = cuFuncGetAttribute(&registers, CU_FUNC_ATTRIBUTE_NUM_REGS, kernel.function)))
        return failed("asking", status);
    printf("{artifact.kernel}: %d registers\\n", registers);

    /* With memory from cuMemAlloc:
     * status = {name}_launch(&kernel, grid_x, grid_y, grid_z, stream{arguments});
     */

    if ((status = {name}_unload(&kernel)) || (status = cuDevicePrimaryCtxRelease(device)))
        return failed("unloading", status);
    return 0;
}}
"""


def _arguments(parameter: Parameter) -> list[tuple[str, str]]:
    """The arguments of the launch for a parameter, with their types: a pointer and an integer for each `?`."""
    name = re.sub(r"\W", "_", parameter.name)
    name += "_" if name in _RESERVED else ""
    found = [(_C_TYPES[parameter.kind], name)]
    for what, integers in _unknowns(parameter):
        found += [(f"int{each.width}_t", f"{name}_{what}{mode}") for mode, each in integers]
    return found


def _unknowns(parameter: Parameter) -> list[tuple[str, list[tuple[int, Unknown]]]]:
    layout = parameter.layout
    if layout is None:
        return []
    return [
        (what, [(mode, each) for mode, each in enumerate(leaves(integers)) if isinstance(each, Unknown)])
        for what, integers in (("extent", layout.shape), ("stride", layout.stride))
    ]


def _note(parameter: Parameter) -> str:
    """What a launch must hold to for a parameter."""
    if parameter.kind is not Kind.POINTER:
        return f"{parameter.name}: {parameter.kind.value}"
    layout = "" if parameter.layout is None else f", layout {parameter.layout} in elements"
    return f"{parameter.name}: a multiple of {parameter.align} bytes{layout}"
