# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""GPUVerify's tests: the first line of a file is the verdict, the second has the sizes of the launch.

GPUVerify proves a kernel for all inputs; a check runs it, on a few. Its assertions and preconditions become checks at
run time; what it says of two threads at once, or of the accesses of a loop, is left out. It knows races, barriers that
some threads miss, assertions, calls of null pointers, and with an option bounds of arrays, so other faults do not
count. See https://github.com/mc-imperial/gpuverify.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from tilefold.compiler.ptx.expansion import address_of_function

from tilefold.cute.loaded_ptx import PtxKernel
from tilefold.driver.ptx_module import plain_name

from .case import Case
from .opencl_text import as_cuda

CODES = ("E3205", "E3207", "E3208", "E3213")
"""Races, barriers and assertions."""
BOUNDS = ("E3202",)
_TWO_THREADS = re.compile(
    r"\b__(?:other_\w+|uniform_\w+|distinct_\w+|same_group|(?:no_)?(?:read|write)(?:_implies|_offset\w*|_only)?|"
    r"read_permission\w*|exclusive|all|ptr_offset\w*|atomic_has_taken_value|old_\w+|return_val\w*|"
    r"add_noovfl\w*|dominator_enabled|uninterpreted_function_\w+|non_temporal\w*|accessed)\b"
)
_SPECIFICATION = re.compile(
    r"\b__(?:assert|requires|assume|invariant|global_invariant|ensures|function_wide_invariant|candidate_\w+)\s*\("
)
_SCALARS = re.compile(r"--kernel-args=\w+,(\S+)")
"""The values of the arguments that are no arrays."""
_ONE_MEMORY = re.compile(r"\bbarrier\s*\((?!(?=[^;]*LOCAL)(?=[^;]*GLOBAL))")
"""A barrier of OpenCL that orders one memory only."""
_OPTION = re.compile(r"--(\w[\w-]*)=(\[[^\]]*\]|[\d,x*]+)")
_EQUAL = re.compile(r"__requires\(\s*(\w+)\s*==\s*([^;&|]+?)\s*\)\s*;")
_DROPPED = {
    "--invariants-as-candidates": ("__invariant", "__global_invariant"),
    "--no-annotations": ("__invariant", "__global_invariant", "__assert", "__requires", "__assume"),
    "--only-requires": ("__invariant", "__global_invariant", "__assert"),
}
"""Options of GPUVerify that leave out annotations."""
_NAMED = re.compile(r"^//\s*(\w+) = (\d+)\s*$", re.MULTILINE)
"""A value of a counterexample that the test lists."""
_PROTOTYPE = re.compile(
    r"^[ \t]*(?:__device__\s+|extern\s+|static\s+)*(?P<type>(?:unsigned\s+)?\w+\s*\*?)\s*(?<![\w])(?P<name>\w+)\s*"
    r"\((?P<given>[^(){};]*)\)\s*(?:__attribute__\s*\(\(\w+\)\)\s*)?;",
    re.MULTILINE,
)
"""A declaration of a function."""
THREADS = 1 << 10
"""The threads of a launch, at most about this many: GPUVerify's sizes do not count for it, since it runs nothing."""
WORDS = 1 << 17
"""The words of an array."""
WIDE = 4
"""The input whose arrays hold large numbers, for tests of bounds."""


@dataclass(frozen=True)
class Parameter:
    """A parameter of a kernel: its name, its type without the name, and the number that a precondition asks for."""

    name: str
    type: str
    value: str = ""


def cases(checkout: Path) -> Iterator[Case]:
    """All kernels, those of CUDA first."""
    root = checkout / "testsuite"
    for kind, pattern in (("CUDA", "*.cu"), ("OpenCL", "*.cl")):
        for file in sorted(Path(root, kind).rglob(pattern)):
            yield case_of(file, file.relative_to(root).parent.as_posix(), kind)


def case_of(file: Path, name: str, kind: str) -> Case:
    """The case of a file."""
    text = file.read_text(errors="replace")
    lines = text.splitlines()
    verdict, command = lines[0].strip().lower(), lines[1]
    options = dict(_OPTION.findall(command))
    block = _sizes(options.get("blockDim") or options.get("local_size", "64"))
    grid = _sizes(options.get("gridDim") or options.get("num_groups", "2"))
    if "global_size" in options and "num_groups" not in options:
        grid = tuple(-(-a // b) for a, b in zip(_sizes(options["global_size"]), (*block, 1, 1), strict=False))
    is_too_large = int(np.prod(block)) > 1024
    grid, block = reduced(grid, block)
    kernel, parameters = signature(text)
    fixed = _SCALARS.search(command)
    scalars = tuple(fixed[1].split(",")) if fixed else ()
    expected = "clean" if verdict.endswith("pass") else "faults"
    specified, left_out = without_pairs(text)
    specified = re.sub(r"#include\s*[<\"]cuda\.h[>\"]", "", specified)
    cuda = specified if kind == "CUDA" else as_cuda(specified)
    headers = ["gpuverify.h"] + ["opencl.h"] * (kind == "OpenCL")
    headers += ["curand_kernel.h"] * ("curand" in text) + ["groups.h"] * ("cooperative_groups" in text)
    head = "".join(f'#include "{header}"\n' for header in headers) + "#line 1\n"
    for option, dropped in _DROPPED.items():
        if option in command:
            head = head.replace("#line 1\n", "".join(f"#undef {name}\n#define {name}(...) true\n" for name in dropped))
            head += "#line 1\n"
    offset = options.get("global_offset")
    macros = tuple(re.findall(r"-D\w+(?:=\S+)?", command))
    macros += (f"-DSUITE_OFFSETS={offset.strip('[]')}",) if offset else ()
    nulls = "null pointer" in text
    bounds = "check-array-bounds" in command or "checkArrays" in command
    reason = ""
    if "error" in verdict:
        reason = f"the expected result is an error of GPUVerify's own ({verdict.split(':')[1]})"
    elif "--only-intra-group" in command:
        reason = "it leaves out races between groups"
    elif "checkArrays:" in command:
        reason = "it checks races on chosen arrays only"
    elif "--only-log" in command:
        reason = "its option leaves out the search for races"
    elif is_too_large:
        reason = "its groups have more work-items than a block of a GPU has threads"
    elif "benign" in name or "--no-benign" in command or "--equality-abstraction" in command:
        reason = "it tolerates races of writes of the same value, or with the values of an abstraction does not"
    elif "--warp-sync" in command:
        reason = "it takes for granted that the threads of a warp go in step, as before sm_70"
    elif re.search(r"__axiom|__requires_fresh", text):
        reason = "an axiom, or arrays that may overlap"
    elif left_out and (expected == "faults" or "__spec_" in text):
        reason = "its specification speaks of two threads at once, of a loop's accesses, or of functions without bodies"
    elif kind == "OpenCL" and expected == "faults" and _ONE_MEMORY.search(text):
        reason = "its barrier orders one memory, and those of CUDA order all"
    seeds = [0, 1, 2, 3] if nulls or any("*" not in parameter.type for parameter in parameters) else [0, 1]
    seeds += [WIDE] if bounds else []
    return Case(
        name=name,
        text=head + with_bodies(cuda),
        file=file,
        expected=expected,
        grid=grid,
        block=block,
        inputs=tuple(partial(arguments, parameters, seed, block, nulls, scalars) for seed in seeds),
        kernel=kernel,
        nvrtc=("-G", *macros),
        counted=CODES[1:3] if "--only-divergence" in command else CODES + (BOUNDS if bounds else ()),
        ignored=frozenset({"E3204"}),
        left_out=reason if "error" in verdict else "",
        excuse=reason,
        options={"cooperative": True} if "grid_group" in text else {},
    )


def _sizes(text: str) -> tuple[int, ...]:
    return tuple(int(n) for n in re.findall(r"\d+", text)) or (2,)


def reduced(grid: tuple[int, ...], block: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Sizes that a GPU has, and not too many blocks, though two where there are several."""
    sizes = list(block)
    while np.prod(sizes) > 1024:
        sizes[int(np.argmax(sizes))] //= 2
    blocks = list(grid)
    limit = THREADS if min(blocks) < 2 or len(blocks) < 3 else 8 * THREADS  # few blocks in each of three dimensions
    while np.prod(blocks) * np.prod(sizes) > limit and max(blocks) > 2:
        blocks[int(np.argmax(blocks))] //= 2
    return tuple(blocks), tuple(sizes)


def without_pairs(text: str) -> tuple[str, bool]:
    """The text without specifications of two threads or of accesses, and whether there were any."""
    made, begin, found = "", 0, False
    while (call := _SPECIFICATION.search(text, begin)) is not None:
        depth, end = 1, call.end()
        while depth and end < len(text):
            depth += {"(": 1, ")": -1}.get(text[end], 0)
            end += 1
        inner = text[call.end() : end]
        left_out = bool(_TWO_THREADS.search(inner)) or call[0].startswith(("__ensures", "__function_wide"))
        found |= left_out
        made += text[begin : call.start()] + ("true" if left_out else text[call.start() : end])
        begin = end
    found |= bool(re.search(r"__barrier_invariant|__spec_|__function_wide|__global_(?:assert|requires)|__axiom", text))
    return made + text[begin:], found


def with_bodies(text: str) -> str:
    """The text with bodies for functions that are declared alone, of which GPUVerify knows nothing either."""
    bodies = ""
    for found in _PROTOTYPE.finditer(text):
        name, type_text = found["name"], found["type"].strip()
        if type_text in ("return", "else") or re.search(rf"\b{name}\s*\([^;{{}}]*\)\s*\{{", text):
            continue
        result = "" if type_text == "void" else f" return ({type_text})0; "
        bodies += f"\n{found[0].strip().rstrip(';').removeprefix('extern')} {{{result}}}"
    return text + bodies


def signature(text: str) -> tuple[str | None, tuple[Parameter, ...]]:
    """The last kernel of a text and its parameters."""
    plain = re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.DOTALL)
    found = list(
        re.finditer(
            r"\b(?:__global__|(?:__)?kernel)\b[^({;]*?(\w+)\s*\(([^{};]*?)\)\s*(?:__attribute__.*?)?\{",
            plain,
            re.DOTALL,
        )
    )
    if not found:
        return None, ()
    name, inner = found[-1][1], found[-1][2]
    asked = {m[1]: m[2] for m in _NAMED.finditer(text)} | {m[1]: m[2] for m in _EQUAL.finditer(plain)}
    parameters: list[Parameter] = []
    for part in inner.split(","):
        words = re.findall(r"\w+", part.split("[")[0])
        if not words or words == ["void"] or re.search(r"\b(?:__)?local\b", part):
            continue
        type_text = part[: part.rfind(words[-1])] + ("*" if "[" in part else "")
        parameters.append(Parameter(words[-1], type_text.strip(), asked.get(words[-1], "")))
    return name, tuple(parameters)


def arguments(
    parameters: Sequence[Parameter],
    seed: int,
    block: tuple[int, ...],
    nulls: bool,
    scalars: Sequence[str],
    kernel: PtxKernel,
) -> list[Any]:
    """The arguments of one run: arrays of words, and numbers, the same for all that no precondition asks for."""
    rng = np.random.default_rng(seed)
    number = (5, 64, 1, 0, 5)[seed]
    given_scalars = iter(scalars)
    given: list[Any] = []
    functions = {plain_name(name): name for name in kernel.module.module.functions}
    for parameter, wanted in zip(parameters, kernel.function.parameters, strict=True):
        scalar = None if "*" in parameter.type else _number(next(given_scalars, ""), block)
        if wanted.is_structure and scalar is not None:
            given.append(scalar.to_bytes(wanted.size, "little"))
        elif scalar is not None:
            given.append(float(scalar) if wanted.type[0] == "f" else scalar)
        elif wanted.is_structure:
            given.append(rng.integers(0, 4, wanted.size, np.uint8).tobytes())
        elif parameter.value.lstrip("&") in functions:
            given.append(address_of_function(kernel.module.module, functions[parameter.value.lstrip("&")]))
        elif "*" in parameter.type and nulls and seed == 3:
            given.append(0)
        elif "*" in parameter.type:
            high = 1 if seed in (1, 3) else WORDS if seed == WIDE else 8
            words = rng.integers(0, high, WORDS).astype(np.int32)
            floats = "float" in parameter.type or "double" in parameter.type
            given.append(words.astype(np.float64 if "double" in parameter.type else np.float32) if floats else words)
        else:
            asked = _number(parameter.value, block)
            value = number if asked is None else asked
            given.append(float(value) if wanted.type[0] == "f" else value)
    return given


def _number(text: str, block: tuple[int, ...]) -> int | None:
    """A number as a precondition spells it; None for another expression."""
    if not text:
        return None
    text = re.sub(r"blockDim\.x|get_local_size\(0\)", str(block[0]), text)
    return int(text, 0) if re.fullmatch(r"0x[0-9a-fA-F]+|\d+", text) else None
