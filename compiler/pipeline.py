# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The pipeline: the stages of lowering in order, and the passes that lead from each to the next."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from xdsl.passes import ModulePass

from ..base.target import DEFAULT_ARCH
from ..passes import registry

_COMPILING = {"emit-gpu-binary": registry.pass_of(f"{__package__}.cute_ir.emit_gpu_binary", "emit-gpu-binary")}

OUR_PASSES: Mapping[str, Callable[[], type[ModulePass]]] = MappingProxyType({**registry.OUR_PASSES, **_COMPILING})
"""The passes that tilefold defines: those of `passes`, and those that compile to PTX."""

PASSES: Mapping[str, Callable[[], type[ModulePass]]] = MappingProxyType({**registry.PASSES, **_COMPILING})
"""All passes of the command line: ours, and those of xDSL that the pipeline uses."""


@dataclass(frozen=True, slots=True)
class Stage:
    """A stage of lowering: its name, the state of the program there, and the passes that lead to it.

    `{target}` in a pass stands for the target's name.
    """

    name: str
    summary: str
    passes: tuple[str, ...]


STAGES: tuple[Stage, ...] = (
    Stage("cute", "as written or built", ("check-stage{{stage=cute}}",)),
    Stage(
        "folded",
        "every static layout operation folded into types and constants",
        ("check-target{{target={target}}}", "fold-layouts", "cse", "check-stage{{stage=folded}}"),
    ),
    Stage(
        "atoms",
        "copies and multiplications expanded to executions of atoms on per-thread tensors",
        ("expand-gemms", "expand-copies", "expand-maps", "check-stage{{stage=atoms}}"),
    ),
    Stage(
        "index",
        "tensors are pointers plus index arithmetic",
        ("lower-tensors", "cse", "check-stage{{stage=index}}"),
    ),
    Stage(
        "instr",
        "one operation for each PTX instruction",
        (
            "combine-remainders",
            "unroll-loops",
            "cse",
            "merge-accesses",
            "expand-atoms",
            "expand-conversions",
            "allocate-smem{{target={target}}}",
            "convert-index",
            "strength-reduce",
            "cse",
            "check-target{{target={target}}}",
            "check-stage{{stage=instr}}",
        ),
    ),
)
"""All stages whose programs are IR, in order. After `instr` come `expand-math`, LLVM IR text, PTX and machine code."""

STAGE_NAMES: tuple[str, ...] = tuple(stage.name for stage in STAGES)
"""The names of the stages in order."""


def pipeline_to(stage: str, target: str = DEFAULT_ARCH, after: str | None = None) -> list[str]:
    """The passes, as the command line writes them, that bring a program to a stage, from stage `after` or from text."""
    first = 0 if after is None else STAGE_NAMES.index(after) + 1
    passed = STAGES[first : STAGE_NAMES.index(stage) + 1]
    return [text.format(target=target) for passing in passed for text in passing.passes]
