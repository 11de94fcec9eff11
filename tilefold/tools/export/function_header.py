# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The header of an exported host function: its tensors as structures, and functions that load, launch and unload.

They need the CUDA driver API and the object file beside the header: its data, and the function that computes the values
which the launches take.
"""

from collections.abc import Iterator, Mapping, Sequence

from xdsl.ir import Attribute

from tilefold.dialects.kernel import passed_as
from tilefold.dialects.tile import TensorType
from tilefold.layout.algebra.core import Layout
from tilefold.layout.algebra.integers import Unknown
from tilefold.layout.algebra.inttuple import leaves
from tilefold.runtime.compiled.artifact import Artifact
from tilefold.tools.export.c_names import LICENCE, TAKEN, Argument, free_name
from tilefold.tools.export.exporting import write_encoding, write_settings
from tilefold.tools.export.function_record import FunctionRecord, LaunchRecord

_LINES, _INNER = ",\n    ", ",\n        "
_CONFIGURATION = (
    "gridDimX", "gridDimY", "gridDimZ", "blockDimX", "blockDimY", "blockDimZ", "sharedMemBytes", "hStream",
)  # fmt: skip
"""The members of CUlaunchConfig, in the order of the arguments of cuLaunchKernel."""


def function_header(
    record: FunctionRecord,
    types: Mapping[str, Attribute | None],
    values: int,
    codes: Sequence[int],
    driver: str = "#include <cuda.h>\n#include <stdint.h>\n",
    default_stream: str = "0",
) -> str:
    """The header. `types` are those of the arguments by name, None for streams, in the order in which C passes them;
    the function computes `values` numbers, and `codes` are the places of the kernels' code in the data. `driver`
    declares the driver API, and `default_stream` is that of launches that name none.
    """
    name, taken = record.name, set[str]()
    names = {argument: free_name(argument, taken, TAKEN - {"stream"}) for argument in types}
    tensors = {argument: type for argument, type in types.items() if isinstance(type, TensorType)}
    artifacts = [build.artifacts[0] for build in record.builds]
    targets = ", ".join(dict.fromkeys(_target(artifact) for artifact in artifacts))
    passed = [_passed(names[argument], type) for argument, type in types.items() if type is not None]
    computed = _INNER.join([*(value for each in passed for _, value in each), "values"])
    parameters = _LINES.join([*(c for each in passed for c, _ in each), "int64_t *values"])
    takes = [f"{name}_Kernel_Module_t *module", *(_declared(name, names[a], a, type) for a, type in types.items())]
    guards = "".join(
        f"    if (values[{value}] != {number})\n        return CUDA_ERROR_INVALID_VALUE;\n"
        for value, number in record.guards
    )
    launches = "".join(
        _launch(launch, number, artifacts[launch.kernel], names, tensors, default_stream)
        for number, launch in enumerate(record.launches)
    )
    guard = f"TILEFOLD_{name.upper()}_H"
    return f"""{LICENCE}
#ifndef {guard}
#define {guard}

{driver}#include <stdio.h>
#include <string.h>

/* Function {name} for {targets}: load its kernels into the current context, call it, and unload them. Each
 * function returns the driver's status. Link the object file beside this header, and the driver (-lcuda).
 */

{"".join(_structure(name, argument, type) for argument, type in tensors.items())}typedef struct {{
    CUmodule modules[{len(artifacts)}];
    CUfunction functions[{len(artifacts)}];
}} {name}_Kernel_Module_t;

#ifdef __cplusplus
extern "C" {{
#endif
/* in the object file: the kernels, and the function that computes the values of which launches are made */
extern const unsigned char {name}_data[];
void {name}_values(
    {parameters});
#ifdef __cplusplus
}}
#endif

static inline CUresult {name}_Kernel_Module_Unload({name}_Kernel_Module_t *module)
{{
    CUresult status = CUDA_SUCCESS;
    int i;
    for (i = 0; i < {len(artifacts)}; i++)
        if (module->modules[i]) {{
            CUresult unloaded = cuModuleUnload(module->modules[i]);
            if (status == CUDA_SUCCESS)
                status = unloaded;
        }}
    memset(module, 0, sizeof *module);
    return status;
}}

static inline CUresult {name}_Kernel_Module_Load({name}_Kernel_Module_t *module)
{{
    CUresult status = CUDA_SUCCESS;
    memset(module, 0, sizeof *module);
{"".join(map(_load, [name] * len(artifacts), range(len(artifacts)), artifacts, codes))}\
    if (status != CUDA_SUCCESS)
        (void){name}_Kernel_Module_Unload(module);
    return status;
}}

/* Queues the launches of the function. */
static inline CUresult cute_dsl_{name}_wrapper(
    {_LINES.join(takes)})
{{
    CUresult status;
    int64_t values[{values}];
    {name}_values(
        {computed});
{guards}{launches}    return CUDA_SUCCESS;
}}

#endif
"""


def _target(artifact: Artifact) -> str:
    return str(artifact.target) if isinstance(artifact.code, bytes) else f"{artifact.target}, as PTX"


def _structure(name: str, argument: str, type: TensorType) -> str:
    """The structure for a tensor: the address, and the integers that its type leaves open."""
    layout = type.layout.data
    parts = [f"    void *data; /* {type.element_type}, a multiple of {type.align.data} bytes */"]
    for fact in ("shape", "stride"):
        unknowns = _open(type, fact)
        bits = max([64 if fact == "stride" else 32, *(unknown.width for unknown in unknowns)])
        parts += [f"    int{bits}_t dynamic_{fact}s[{len(unknowns)}];"] * bool(unknowns)
    lines = "\n".join(parts)
    return f"/* layout {layout}, in elements */\ntypedef struct {{\n{lines}\n}} {name}_Tensor_{argument}_t;\n\n"


def _open(type: TensorType, part: str) -> list[Unknown]:
    layout = type.layout.data
    assert isinstance(layout, Layout), "arguments have plain layouts"
    return [leaf for leaf in leaves(getattr(layout, part)) if isinstance(leaf, Unknown)]


def _declared(function: str, name: str, argument: str, type: Attribute | None) -> str:
    """The declaration of an argument of the wrapper."""
    if type is None:
        return f"CUstream {name}"
    if isinstance(type, TensorType):
        return f"{function}_Tensor_{argument}_t *{name}"
    kind = passed_as(type)
    assert kind is not None, "a launch can pass the arguments of a function"
    return f"{kind.c} {name}"


def _passed(name: str, type: Attribute) -> list[tuple[str, str]]:
    """The type of each value that stands for an argument, and the value, for the function that computes."""
    if not isinstance(type, TensorType):
        kind = passed_as(type)
        assert kind is not None, "a launch can pass the arguments of a function"
        return [(kind.c, name)]
    return [
        ("const void *", f"{name}->data"),
        *((f"int{unknown.width}_t", f"(int{unknown.width}_t){place}") for unknown, place in _integers(name, type)),
    ]


def _integers(name: str, type: TensorType) -> Iterator[tuple[Unknown, str]]:
    """The integers that a tensor's type leaves open, and where its structure has them."""
    for part in ("shape", "stride"):
        for number, unknown in enumerate(_open(type, part)):
            yield unknown, f"{name}->dynamic_{part}s[{number}]"


def _load(name: str, number: int, artifact: Artifact, code: int) -> str:
    return f"""    if (status == CUDA_SUCCESS)
        status = cuModuleLoadData(&module->modules[{number}], {name}_data + {code});
    if (status == CUDA_SUCCESS)
        status = cuModuleGetFunction(&module->functions[{number}], module->modules[{number}], "{artifact.kernel}");
{write_settings(artifact, f"module->functions[{number}]")}"""


def _launch(
    launch: LaunchRecord,
    number: int,
    artifact: Artifact,
    names: Mapping[str, str],
    tensors: Mapping[str, TensorType],
    default_stream: str,
) -> str:
    """The statements of a launch, whose arguments are addresses of the fields of the structures and of `values`."""
    values: list[str] = []
    for parameter in artifact.parameters:
        source = launch.arguments[parameter.name]
        if isinstance(source, int):
            values.append(f"values[{source}]")  # whose lowest bytes come first
        else:
            values += [f"{names[source]}->data", *(place for _, place in _integers(names[source], tensors[source]))]
    kinds = artifact.kinds
    given = [
        Argument(f"(CUdeviceptr){value}" if kind.is_tensor else value, kind, "")
        for kind, value in zip(kinds, values, strict=True)
    ]
    maps = [f"tensor_map{index}" for index in range(len(artifact.maps))]
    encoded = "".join(map(write_encoding, artifact.maps, maps, [given] * len(maps)))
    addresses = _INNER.join(f"&{value}" for value in (*values, *maps)) or "0"
    sizes = [f"(unsigned)values[{value}]" for value in launch.grid] + [str(size) for size in artifact.block]
    sizes += [str(artifact.dynamic_shared), default_stream if launch.stream is None else names[launch.stream]]
    function = f"module->functions[{launch.kernel}]"
    attributes = list(_attributes(launch))
    rows = [function, ", ".join(sizes[:3]), ", ".join([*sizes[3:], "arguments, 0"])]
    call = f"cuLaunchKernel(\n        {_INNER.join(rows)})"
    set_up = ""
    if attributes:
        members = [f"config.{member} = {size}" for member, size in zip(_CONFIGURATION, sizes, strict=True)]
        members += ["config.attrs = attributes", f"config.numAttrs = {len(attributes)}"]
        for index, (identity, values) in enumerate(attributes):
            members.append(f"attributes[{index}].id = CU_LAUNCH_ATTRIBUTE_{identity}")
            members += [f"attributes[{index}].value.{value}" for value in values]
        set_up = f"""    CUlaunchAttribute attributes[{len(attributes)}];
    CUlaunchConfig config;
    memset(attributes, 0, sizeof attributes);
    memset(&config, 0, sizeof config);
{"".join(f"    {member};{chr(10)}" for member in members)}"""
        call = f"cuLaunchKernelEx(&config, {function}, arguments, 0)"
    body = f"""{encoded}    void *arguments[] = {{
        {addresses}}};
{set_up}    status = {call};
    if (status != CUDA_SUCCESS)
        return status;
"""
    indented = "".join(f"    {line}" if line.strip() else line for line in body.splitlines(keepends=True))
    return f"    {{ /* launch {number} */\n{indented}    }}\n"


def _attributes(launch: LaunchRecord) -> Iterator[tuple[str, list[str]]]:
    """The attributes of a launch in C: the name, and the members of the value that are set."""
    if launch.cluster is not None:
        sizes = zip("xyz", launch.cluster, strict=True)
        yield "CLUSTER_DIMENSION", [f"clusterDim.{axis} = {size}" for axis, size in sizes]
    if launch.use_pdl:
        yield "PROGRAMMATIC_STREAM_SERIALIZATION", ["programmaticStreamSerializationAllowed = 1"]
    if launch.cooperative:
        yield "COOPERATIVE", ["cooperative = 1"]
