# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A kernel for programs in C and C++: machine code or PTX, a header that loads and launches it, and an example.

The header needs only the CUDA driver API and consists of static functions, each of which returns the driver's status.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tilefold.base.errors import Code, TilefoldError
from tilefold.driver.output import write_files
from tilefold.layout.tma.launch_int import LaunchValue, renamed
from tilefold.layout.tma.recipe import PROMOTIONS, MapRecipe, promotion_for
from tilefold.layout.tma.tensor_map import SWIZZLE_NAMES, UNIT
from tilefold.runtime.compiled.artifact import Artifact, value_name
from tilefold.tools.export.c_names import LICENCE, Argument, arguments
from tilefold.tools.export.example import example

if TYPE_CHECKING:
    from tilefold.dialects.tile import TensorType


@dataclass(frozen=True, slots=True)
class Exported:
    """The files of an exported kernel: its code, the header, and an example of a program."""

    code: Path
    header: Path
    example: Path


def export(artifact: Artifact, folder: Path, tensors: "Mapping[str, TensorType] | None" = None) -> Exported:
    """Writes a kernel, as the machine code or PTX that the artifact has, to files in a folder: to all or none.

    `tensors` are the types of its tensors by name, which the header tells as far as they are known.
    TilefoldError (E4002) where they cannot be written.
    """
    name, code = artifact.kernel, artifact.code
    suffix = "ptx" if isinstance(code, str) else "cubin"
    files = Exported(folder / f"{name}.{suffix}", folder / f"{name}.h", folder / f"{name}_example.c")
    passed = arguments(artifact, tensors or {})
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise TilefoldError(Code.CLI_WRITE, f"{folder}: {error.strerror}") from None
    write_files(
        {
            str(files.code): code,
            str(files.header): header(artifact, passed),
            str(files.example): example(name, files.code.name, passed),
        }
    )
    return files


def write_settings(artifact: Artifact, function: str) -> str:
    """The statements that set the attributes of a loaded function, after which `status` is that of the last one."""
    attributes = (
        ("MAX_DYNAMIC_SHARED_SIZE_BYTES", artifact.dynamic_shared),
        ("NON_PORTABLE_CLUSTER_SIZE_ALLOWED", int(artifact.non_portable)),
    )
    return "".join(
        f"""    if (status == CUDA_SUCCESS)
        status = cuFuncSetAttribute(
            {function}, CU_FUNC_ATTRIBUTE_{attribute}, {value});
"""
        for attribute, value in attributes
        if value
    )


def header(artifact: Artifact, passed: tuple[Argument, ...]) -> str:
    """The header: `NAME_load` loads the code in the current context, `NAME_launch` queues the kernel."""
    name = artifact.kernel
    declared = "".join(f",\n    {argument.kind.c} {argument.name}" for argument in passed)
    maps = [f"tensor_map{number}" for number in range(len(artifact.maps))]
    encoded = "".join(
        write_encoding(recipe, map_name, passed) for recipe, map_name in zip(artifact.maps, maps, strict=True)
    )
    addresses = ", ".join(f"&{value}" for value in (*(argument.name for argument in passed), *maps)) or "0"
    notes = "".join(f" *   {argument.name}: {argument.note}\n" for argument in passed if argument.note)
    x, y, z = artifact.block
    settings = write_settings(artifact, "kernel->function")
    clusters = ""
    if artifact.cluster is not None:
        clusters = " The grid is made of\n * clusters of {} x {} x {} blocks.".format(*artifact.cluster)
    guard = f"TILEFOLD_{name.upper()}_H"
    return f"""{LICENCE}
#ifndef {guard}
#define {guard}

#include <cuda.h>
#include <stdint.h>

/* Kernel {name} for {artifact.target}: blocks of {x} x {y} x {z} threads, {artifact.dynamic_shared} bytes of dynamic
 * shared memory.{clusters} Its arguments:
{notes} */

typedef struct {name}_kernel {{
    CUmodule module;
    CUfunction function;
}} {name}_kernel;

/* The end of a load: finds the kernel in its module, which is unloaded if there is none. */
static inline CUresult {name}_find({name}_kernel *kernel)
{{
    CUresult status = cuModuleGetFunction(&kernel->function, kernel->module, "{name}");
{settings}    if (status != CUDA_SUCCESS)
        (void)cuModuleUnload(kernel->module);
    return status;
}}

/* Loads the file with the code into the current context. */
static inline CUresult {name}_load({name}_kernel *kernel, const char *file)
{{
    CUresult status = cuModuleLoad(&kernel->module, file);
    return status == CUDA_SUCCESS ? {name}_find(kernel) : status;
}}

/* Loads the file's contents from memory; after PTX there must be a byte 0. */
static inline CUresult {name}_load_data({name}_kernel *kernel, const void *data)
{{
    CUresult status = cuModuleLoadData(&kernel->module, data);
    return status == CUDA_SUCCESS ? {name}_find(kernel) : status;
}}

/* Queues the kernel in a stream over a grid of blocks. */
static inline CUresult {name}_launch(
    const {name}_kernel *kernel,
    unsigned grid_x,
    unsigned grid_y,
    unsigned grid_z,
    CUstream stream{declared})
{{{encoded}
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


def write_encoding(recipe: MapRecipe, name: str, passed: Sequence[Argument]) -> str:
    """The statements that declare a tensor map under a name and encode it, or return the driver's status; that of an
    invalid value for rows that TMA copies cannot store.
    """
    names = {value_name(number): f"(cuuint64_t){argument.name}" for number, argument in enumerate(passed)}
    rank = len(recipe.box)
    tensor = next(argument.name for number, argument in enumerate(passed) if value_name(number) == recipe.tensor)
    offset = "" if recipe.offset == 0 else f" + {_text(recipe.offset, names)}"
    dims, strides = (", ".join(_text(x, names) for x in values) for values in (recipe.dims, recipe.strides))
    fill = "NAN_REQUEST_ZERO_FMA" if recipe.nan_fill else "NONE"
    row = f"{name}_dims[0] * {recipe.element.type.bits // 8} % {UNIT}"
    checked = f"\n    if ({row})\n        return CUDA_ERROR_INVALID_VALUE;" if recipe.stored else ""
    return f"""
    CUtensorMap {name};
    const cuuint64_t {name}_dims[] = {{{dims}}};{checked}
    const cuuint64_t {name}_strides[] = {{{strides or 0}}};
    const cuuint32_t {name}_box[] = {{{", ".join(map(str, recipe.box))}}};
    const cuuint32_t {name}_steps[] = {{{", ".join(["1"] * rank)}}};
    CUresult {name}_status = cuTensorMapEncodeTiled(
        &{name}, CU_TENSOR_MAP_DATA_TYPE_{recipe.element.driver_name}, {rank},
        (void *)(uintptr_t)({tensor}{offset}), {name}_dims, {name}_strides, {name}_box,
        {name}_steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_{SWIZZLE_NAMES[recipe.swizzle_bits]},
        {_promotion(recipe, f"{name}_strides")}, CU_TENSOR_MAP_FLOAT_OOB_FILL_{fill});
    if ({name}_status != CUDA_SUCCESS)
        return {name}_status;
"""


def _promotion(recipe: MapRecipe, strides: str) -> str:
    """The expression of `promotion_for`."""
    known = [stride for stride in recipe.strides if isinstance(stride, int)]
    most = promotion_for(known, recipe.promotion)
    places = [place for place, stride in enumerate(recipe.strides) if not isinstance(stride, int)]
    together = " | ".join(f"{strides}[{place}]" for place in places)
    expression = "CU_TENSOR_MAP_L2_PROMOTION_NONE"
    for size in PROMOTIONS[1 : PROMOTIONS.index(most) + 1]:
        promotion = f"CU_TENSOR_MAP_L2_PROMOTION_L2_{size}B"
        expression = f"({together}) % {size} == 0 ? {promotion} : {expression}" if places else promotion
    return expression


def _text(value: LaunchValue, names: Mapping[str, str]) -> str:
    return str(renamed(value, names)).replace("//", "/")
