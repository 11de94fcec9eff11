# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Running host programs on the simulator in tests."""

import io
from collections.abc import Mapping
from contextlib import redirect_stdout

import pytest
from tilefold.base.limits import Limits
from tilefold.compiler.frontend.diagnostics import Diagnostic, ProgramError
from tilefold.compiler.frontend.source import plain_source
from tilefold.runtime.sim.sim_engine import SimEngine

from tilefold.driver.host_program import Host
from tilefold.driver.lowering import load

C = """\
llvm.func @printf(!llvm.ptr, ...) -> i32
llvm.func @atoi(!llvm.ptr) -> i32
llvm.func @getenv(!llvm.ptr) -> !llvm.ptr
llvm.mlir.global internal constant @name("BASE\\00") {addr_space = 0 : i32}
func.func private @base() -> i32 {
  %0 = llvm.mlir.addressof @name : !llvm.ptr
  %1 = llvm.call @getenv(%0) : (!llvm.ptr) -> !llvm.ptr
  %2 = llvm.call @atoi(%1) : (!llvm.ptr) -> i32
  return %2 : i32
}
"""
"""Declarations of C's functions, and a function that reads a number from the environment variable BASE."""


def main_of(body: str) -> str:
    """A program whose `@main` is `body`, which starts on line 2."""
    return f"func.func @main() {{\n{body}\nreturn\n}}\n"


def kernel(body: str, args: str = "", threads: int = 4, call: str = "", grid: int = 1) -> str:
    """A program that launches a kernel; `call` says how, `body` starts on line 3."""
    call = call or "gpu.launch_func @m::@k blocks in (%g, %y, %y) threads in (%x, %y, %y)"
    return (
        f"gpu.module @m {{\ngpu.func @k({args}) kernel {{\n{body}\ngpu.return\n}}\n}}\n"
        f"func.func @main() {{\n%x = arith.constant {threads} : index\n%y = arith.constant 1 : index\n"
        f"%g = arith.constant {grid} : index\n{call}\n"
        "return\n}\n"
    )


def run(
    text: str,
    *,
    stage: str | None = None,
    environment: Mapping[str, str | None] | None = None,
    budget: Limits | None = None,
    entry: str = "main",
) -> str:
    """What a program prints; its file name is `test.mlir`."""
    program = load(plain_source(text, "test.mlir"))
    host = Host(program, environment or {}, SimEngine(budget=budget or Limits()))
    output = io.StringIO()
    with redirect_stdout(output):
        assert host.simulate(entry, stage)
    return output.getvalue()


def everywhere(text: str, **environment: str) -> str:
    """What a program prints with its kernels as written; the same must come of it at every stage of lowering."""
    return run(text, stage="all", environment=environment)


def refused(text: str, code: str, **options: object) -> Diagnostic:
    """The first error of a program that does not run to its end; it must have this code."""
    with pytest.raises(ProgramError) as caught:
        run(text, **options)  # pyright: ignore[reportArgumentType]
    first = caught.value.diagnostics[0]
    assert first.code == code, str(caught.value)
    return first
