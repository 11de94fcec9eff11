# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels in the `llvm` dialect, as PTX."""

from tilefold.base.target import Target
from tilefold.compiler.cute_ir.llvm_dialect import llvm_text
from tilefold.compiler.machine.nvptx import compile_llvm
from tilefold.dialects.gpu import ModuleOp

from tests.emit.harness import parse


def ptx_of(body: str, args: str, arch: str, functions: str = "") -> str:
    """The PTX of a kernel in the `llvm` dialect for a target."""
    module = parse(
        f"gpu.module @m {{\n{functions}\nllvm.func @k({args}) attributes {{gpu.kernel, nvvm.kernel}} {{\n"
        f"{body}\nllvm.return\n}} }}"
    )
    program = module.body.block.first_op
    assert isinstance(program, ModuleOp)
    return compile_llvm(llvm_text(program, Target(arch)), Target(arch))


def test_a_pointer_keeps_its_address_space() -> None:
    body = "%x = llvm.load %a : !llvm.ptr<1> -> i32\nllvm.store %x, %s : i32, !llvm.ptr<3>"
    ptx = ptx_of(body, "%a: !llvm.ptr<1>, %s: !llvm.ptr<3>", "sm_80")
    assert "ld.global.b32" in ptx
    assert "st.shared.b32" in ptx
