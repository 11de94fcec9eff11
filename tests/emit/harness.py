# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels of stage `instr` from text, and what they are compiled to."""

from tilefold.base.target import Target
from tilefold.compiler.emit import emit_llvm
from tilefold.compiler.frontend.program import parse_program
from tilefold.compiler.frontend.source import plain_source
from tilefold.compiler.frontend.verify import verify_program
from tilefold.compiler.machine.nvptx import compile_llvm
from tilefold.compiler.pipeline import make_context
from xdsl.dialects.builtin import ModuleOp

SM80 = Target("sm_80")
ASSEMBLED = tuple(map(Target, ("sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_120a")))
"""The targets that everything is assembled for."""


def kernel(body: str, args: str = "", threads: str = "32", shared: int = 0, name: str = "k") -> str:
    """The text of a module with one kernel."""
    lines = "\n".join(f"    {line.strip()}" for line in body.strip().splitlines())
    place = f" shared({shared})" if shared else ""
    return (
        f"gpu.module @kernels {{\n  ptx.entry @{name}({args}) threads({threads}){place} {{\n{lines}\n"
        "    ptx.ret\n  }\n}\n"
    )


def parse(text: str) -> ModuleOp:
    """The verified module of a program's text."""
    module = parse_program(plain_source(text, "k.cute"), make_context())
    verify_program(module)
    return module


def llvm_of(text: str, target: Target = SM80, *, assertions: bool = True) -> str:
    """The LLVM IR of a program's text."""
    return emit_llvm(parse(text), target, assertions=assertions)


def ptx_of(text: str, target: Target = SM80, *, assertions: bool = True) -> str:
    """The PTX of a program's text."""
    return compile_llvm(llvm_of(text, target, assertions=assertions), target)
