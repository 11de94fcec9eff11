# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The output of the compiler for a program and a target, as one record that can be kept: PTX, machine code, kernels."""

import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any

from ...base.errors import TilefoldError
from ...base.parameters import KindNamed, kind_named
from ...base.target import Target
from ...layout.algebra.core import Layout
from ...layout.text.layouts import parse_layout, to_text
from ...layout.tma.recipe_text import parse_recipe, print_recipe
from .artifact import Artifact, Parameter

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
