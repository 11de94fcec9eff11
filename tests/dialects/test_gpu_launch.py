# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""MLIR's assembly of kernels and launches: what is read is written the same, and faults are named."""

import pytest
from tilefold.compiler.frontend.diagnostics import ProgramError
from tilefold.compiler.frontend.program import parse_program, print_program
from tilefold.compiler.frontend.source import plain_source
from tilefold.compiler.pipeline import make_context

PROGRAM = """\
gpu.module @m {
  gpu.func @k(%n: i32, %l: !cute.layout<"(?,4):(1,?)">) kernel attributes {known_block_size = array<i32: 8, 1, 1>} {
    gpu.printf "%d\\0A", %n : i32
    gpu.printf "once"
    gpu.barrier
    gpu.return
  }
  gpu.func @f(%n: i32) -> (i32, i32) {
    gpu.return %n, %n : i32, i32
  }
}
func.func @main(%x: index, %n: i32, %l: !cute.layout<"(?,4):(1,?)">) {
  %t = gpu.wait async
  %u = gpu.launch_func async [%t] @m::@k clusters in (%x, %x, %x) blocks in (%x, %x, %x) threads in (%x, %x, %x) \
dynamic_shared_memory_size %n args(%n : i32, %l : !cute.layout<"(?,4):(1,?)">) {note = 1 : i64}
  gpu.wait [%u, %t]
  gpu.launch_func @m::@k blocks in (%x, %x, %x) threads in (%x, %x, %x)
  return
}
"""


def _read(text: str, *, generic: bool = False) -> str:
    return print_program(parse_program(plain_source(text, "t.mlir"), make_context()), generic=generic)


def test_what_is_read_is_written_the_same() -> None:
    written = _read(PROGRAM)
    for line in PROGRAM.splitlines():
        assert line.strip() in written
    assert _read(written) == written
    assert _read(_read(PROGRAM, generic=True)) == written


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("blocks in (%x, %x, %x)", "blocks in (%x, %x)", "three sizes"),
        ("@m::@k blocks", '"k" blocks', "expected the kernel"),
        ("threads in (%x, %x, %x)\n", "\n", "threads"),
        ("kernel attributes", "-> (i32) kernel attributes", "void return type"),
        ("gpu.wait [%u, %t]", "gpu.wait [%x]", "%x"),
    ],
)
def test_faults_are_named(old: str, new: str, words: str) -> None:
    with pytest.raises(ProgramError) as caught:
        _read(PROGRAM.replace(old, new))
    assert words in str(caught.value)
    assert "t.mlir:" in str(caught.value)
