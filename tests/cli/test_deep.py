# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Files in which an operation has operands hundreds deep, or is reached from another in very many ways."""

from pathlib import Path

import pytest

from tests.cli.kernels import write
from tests.passes.harness import entry
from tilefold.commands.cli import main

DEPTH = 400
"""More than Python's stack has room for, when an analysis takes three calls an operand."""
KERNEL = """\
!g = !tile.tensor<i32, gmem, align<16>, "32:1">
!f = !tile.tensor<i32, rmem, align<16>, "32:1">
gpu.module @kernels {{
  tile.kernel @deep(%A: !g, %B: !g) threads(32) {{
    %t = gpu.thread_id x
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %c7 = arith.constant 7 : index
    %c31 = arith.constant 31 : index
    %R = tile.alloc : !f
    %v0 = arith.addi %t, %c0 : index
{chain}
    %place = arith.andi %v{last}, %c31 : index
    %x = tile.load %A(%place)
    tile.store %x, %R(%place)
    %y = tile.load %R(%place)
    %z = arith.index_cast %v{last} : index to i32
    %sum = arith.addi %y, %z : i32
    tile.store %sum, %B(%t)
    return
  }}
}}
run.launch @kernels::@deep grid(1) {{
  run.arg "A" : !g = "arange()"
  run.arg "B" : !g = "poison"
}}
"""
BY_CONSTANT = (
    "addi", "subi", "muli", "divui", "divsi", "remui", "remsi", "andi", "ori", "xori", "shrui", "shrsi", "minsi",
    "maxsi", "minui", "maxui",
)  # fmt: skip
CHAINS = {
    "sums": "%v{n} = arith.addi %v{i}, %c3 : index",
    "sums of sums": "%v{n} = arith.addi %v{i}, %v{i} : index",
    "quotients": "%v{n} = arith.divui %v{i}, %c3 : index",
    "remainders": "%v{n} = arith.remui %v{i}, %c7 : index",
    "casts": "%w{i} = arith.index_cast %v{i} : index to i32\n%v{n} = arith.index_cast %w{i} : i32 to index",
    "choices": "%w{i} = arith.cmpi slt, %v{i}, %c7 : index\n%v{n} = arith.select %w{i}, %v{i}, %t : index",
    "branches": """%w{i} = arith.cmpi slt, %v{i}, %c7 : index
        %v{n} = scf.if %w{i} -> (index) {{
          %q{i} = arith.addi %v{i}, %c1 : index
          scf.yield %q{i} : index
        }} else {{
          scf.yield %v{i} : index
        }}""",
}


def compiled(folder: Path, chain: str, depth: int) -> str:
    """Compiles a kernel with remarks, and gives the name of its file."""
    path = write(folder, KERNEL.format(chain=chain, last=depth))
    assert main(["compile", path, "--emit=ptx", "--remarks", "--output", str(folder / "k.ptx")]) == 0
    return path


@pytest.mark.parametrize("kind", CHAINS)
@pytest.mark.sampled(2)
def test_long_chains_of_one_operation_compile(kind: str, tmp_path: Path) -> None:
    compiled(tmp_path, "\n".join(CHAINS[kind].format(i=i, n=i + 1) for i in range(DEPTH)), DEPTH)


def test_a_long_chain_of_all_operations_compiles_and_runs(tmp_path: Path) -> None:
    depth = 2 * DEPTH
    kinds = [BY_CONSTANT[i % len(BY_CONSTANT)] for i in range(depth)]
    path = compiled(
        tmp_path, "\n".join(f"%v{i + 1} = arith.{op} %v{i}, %c3 : index" for i, op in enumerate(kinds)), depth
    )
    assert main(["run", path, "--device", "sim", "--stage", "all"]) == 0


def test_a_long_chain_of_pointers_compiles(tmp_path: Path) -> None:
    depth = 2 * DEPTH
    lines = [f"%p{i + 1} = ptx.ptr_add %p{i}, %o : !ptx.ptr<global>, i64 -> !ptx.ptr<global>" for i in range(depth)]
    access = (
        f"%x = ptx.ld %p{depth} align 1 : !ptx.ptr<global> -> i8\nptx.st %x, %p{DEPTH} align 1 : i8, !ptx.ptr<global>"
    )
    text = entry("\n".join([*lines, access]), "%p0: !ptx.ptr<global> align 16, %o: i64")
    assert (
        main(["compile", write(tmp_path, text), "--emit=instr", "--remarks", "--output", str(tmp_path / "k.cute")]) == 0
    )
