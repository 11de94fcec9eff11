# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels of stage `instr` as artifacts."""

from tilefold.base.target import Target
from tilefold.compiler.emit import emit_llvm
from tilefold.compiler.machine.assemble import assemble
from tilefold.compiler.machine.nvptx import compile_llvm
from tilefold.dialects.ptx import EntryOp
from tilefold.runtime.compiled.artifact import Artifact, make_artifact

from tests.emit.harness import parse


def artifact(text: str, target: Target, *, cubin: bool = False) -> Artifact:
    """The artifact of a program's first kernel, as PTX for the driver to assemble, or as machine code."""
    module = parse(text)
    entry = next(op for op in module.walk() if isinstance(op, EntryOp))
    ptx = compile_llvm(emit_llvm(module, target), target)
    return make_artifact(entry, assemble(ptx, target).code if cubin else ptx, target)
