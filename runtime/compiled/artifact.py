# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A compiled kernel: code, and facts that a launch needs. The CUDA engine needs this and nothing of the compiler.

A build is the output of the compiler for a program and a target, as one record that can be kept: PTX, machine code,
kernels.
"""

import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any

from ...base.errors import Code, TilefoldError
from ...base.parameters import SCALARS, KindNamed, ParameterKind, kind_named
from ...base.target import STATIC_SHARED_BYTES, Target
from ...layout.algebra.core import Layout
from ...layout.algebra.integers import Unknown
from ...layout.algebra.inttuple import leaves
from ...layout.text.layouts import parse_layout, to_text
from ...layout.tma.recipe import MapRecipe
from ...layout.tma.recipe_text import parse_recipe, print_recipe

if TYPE_CHECKING:
    from ...dialects.kernel import Parameter as EntryParameter
    from ...dialects.ptx import EntryOp


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a kernel. `align` is the alignment of a tensor's address, in bytes; 1 for
    scalars. A tensor with `?` in its `layout` is passed as a pointer and an integer for each `?`."""

    name: str
    kind: ParameterKind
    align: int = 1
    layout: Layout | None = None

    @property
    def unknowns(self) -> list[Unknown]:
        """The `?` of the layout in the order in which their values are passed, after the pointer."""
        if self.layout is None:
            return []
        return [leaf for leaf in (*leaves(self.layout.shape), *leaves(self.layout.stride)) if isinstance(leaf, Unknown)]

    @property
    def kinds(self) -> list[ParameterKind]:
        """The kinds of the values that are passed: one, and one for each `?`."""
        return [self.kind, *(SCALARS[f"i{unknown.width}"] for unknown in self.unknowns)]


def value_name(number: int) -> str:
    """The name in recipes of a value that is passed, by its number."""
    return f"v{number}"


@dataclass(frozen=True, slots=True)
class Artifact:
    """A kernel ready to be loaded.

    `code` is PTX text, which the driver assembles, or a cubin; it may hold other kernels as well. `block`
    is the size of the block in threads, `dynamic_shared` the bytes of shared memory that a launch must ask
    for. `cluster` is the size of its clusters in blocks, where the kernel says it; `non_portable` allows more than 8.
    Tensor maps by the recipes `maps`, in which values have the names of `value_name`, follow the parameters.
    """

    kernel: str
    code: str | bytes
    target: Target
    parameters: tuple[Parameter, ...]
    block: tuple[int, int, int]
    static_shared: int = 0
    dynamic_shared: int = 0
    cluster: tuple[int, int, int] | None = None
    non_portable: bool = False
    maps: tuple[MapRecipe, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the parameters, in order."""
        return tuple(parameter.name for parameter in self.parameters)

    @property
    def kinds(self) -> list[ParameterKind]:
        """The kinds of all values that are passed, in order."""
        return [kind for parameter in self.parameters for kind in parameter.kinds]


def make_artifact(entry: "EntryOp", code: str | bytes, target: Target) -> Artifact:
    """The artifact of a kernel of stage `instr`, whose code the compiler made for `target`.

    TilefoldError for a parameter of a type that a launch cannot pass.
    """
    names = {name.data: value_name(number) for number, name in enumerate(entry.arg_names)}
    shared = entry.shared_bytes.value.data if entry.shared_bytes is not None else 0
    dynamic = shared > STATIC_SHARED_BYTES
    bounds = entry.launch_bounds
    return Artifact(
        kernel=entry.sym_name.data,
        code=code,
        target=target,
        parameters=tuple(map(_parameter, entry.parameters())),
        block=entry.block,
        static_shared=0 if dynamic else shared,
        dynamic_shared=shared if dynamic else 0,
        cluster=bounds.cluster,
        non_portable=bounds.non_portable,
        maps=tuple(recipe.renamed(names) for recipe in entry.maps.values()),
    )


def _parameter(given: "EntryParameter") -> Parameter:
    kind = given.kind
    if kind is None:
        raise TilefoldError(
            Code.RUN_ARGUMENT,
            f"a launch cannot pass parameter '{given.name}' of type {given.type}",
            "use pointers to global memory, i1 to i64, f16, bf16, f32 or f64",
        )
    return Parameter(given.name, kind, max(given.align, 1) if kind.is_tensor else 1, given.layout)


_LENGTHS = struct.Struct("<III")


@dataclass(frozen=True, slots=True)
class Build:
    """A program compiled: `ptx`, the `cubin` that the assembler made of it, its `log`, and the kernels
    in it, whose code is the cubin.

    Without a cubin (it is empty, as is the log) their code is the PTX, which the driver assembles when it loads them.
    """

    ptx: str
    cubin: bytes
    log: str
    artifacts: tuple[Artifact, ...]

    def artifact(self, kernel: str) -> Artifact:
        """The kernel of this name, which must exist."""
        return next(artifact for artifact in self.artifacts if artifact.kernel == kernel)

    def to_bytes(self) -> bytes:
        """The record as bytes, which `from_bytes` turns into an equal one."""
        record = {"log": self.log, "kernels": [_record(artifact) for artifact in self.artifacts]}
        head, ptx = json.dumps(record).encode(), self.ptx.encode()
        return _LENGTHS.pack(len(head), len(ptx), len(self.cubin)) + head + ptx + self.cubin

    @staticmethod
    def from_bytes(data: bytes, kinds: KindNamed = kind_named) -> "Build":
        """The record of `to_bytes`, whose parameters have kinds of `kinds`. ValueError for other bytes."""
        try:
            lengths = _LENGTHS.unpack_from(data)
            if _LENGTHS.size + sum(lengths) != len(data):
                raise ValueError("the record differs in length from its header")
            ends = list(accumulate((_LENGTHS.size, *lengths)))
            head, ptx, cubin = (data[begin:end] for begin, end in pairwise(ends))
            record = json.loads(head)
            text = ptx.decode()
            artifacts = tuple(_artifact(kernel, cubin or text, kinds) for kernel in record["kernels"])
            return Build(text, cubin, record["log"], artifacts)
        except (struct.error, LookupError, TypeError, AttributeError, TilefoldError) as error:
            raise ValueError(f"not a record of a build: {error}") from error


def _record(artifact: Artifact) -> dict[str, Any]:
    return {
        "kernel": artifact.kernel,
        "target": artifact.target.arch,
        "block": artifact.block,
        "static_shared": artifact.static_shared,
        "dynamic_shared": artifact.dynamic_shared,
        "cluster": artifact.cluster,
        "non_portable": artifact.non_portable,
        "maps": [print_recipe(recipe) for recipe in artifact.maps],
        "parameters": [
            [p.name, p.kind.name, p.align, None if p.layout is None else to_text(p.layout)] for p in artifact.parameters
        ],
    }


def _artifact(record: Mapping[str, Any], code: str | bytes, kinds: KindNamed) -> Artifact:
    (x, y, z), cluster = record["block"], record["cluster"]
    return Artifact(
        kernel=record["kernel"],
        code=code,
        target=Target(record["target"]),
        parameters=tuple(
            Parameter(name, kinds(kind), align, None if layout is None else _layout(layout))
            for name, kind, align, layout in record["parameters"]
        ),
        block=(x, y, z),
        static_shared=record["static_shared"],
        dynamic_shared=record["dynamic_shared"],
        cluster=None if cluster is None else (cluster[0], cluster[1], cluster[2]),
        non_portable=record["non_portable"],
        maps=tuple(parse_recipe(text) for text in record["maps"]),
    )


def _layout(text: str) -> Layout:
    layout = parse_layout(text)
    if not isinstance(layout, Layout):
        raise ValueError(f"{text} is not a plain layout")
    return layout
