# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The main loop of a GEMM by warpgroups as machine code: multiplications, and little else."""

import re

import pytest
from tilefold.base.target import Target
from tilefold.compiler.emit import emit_llvm
from tilefold.compiler.machine.assemble import assemble
from tilefold.compiler.machine.nvptx import compile_llvm

from tests.passes.harness import lowered
from tests.sass import disassemble

SM90A = Target("sm_90a")
K_MAJOR = "S<3,3,3> o 0 o (({0},{1}),(64,1),(1,4)):((64,512),(1,0),(0,{2}))"
MN_MAJOR = "S<3,3,3> o 0 o ((64,{1}),(8,8),(1,4)):((1,4096),(64,512),(0,{2}))"


def loop(rows: int, columns: int, majors: tuple[str, str], groups: int) -> str:
    """The K loop of tiles of `rows` x `columns` x 64 by warpgroups one above the other."""
    layouts = [
        (K_MAJOR if major == "K" else MN_MAJOR).format(8, extent // (8 if major == "K" else 64), 64 * extent)
        for major, extent in zip(majors, (rows, columns), strict=True)
    ]
    atom = f"SM90_64x{columns}x16_F32F16F16_SS<Major::{majors[0]},Major::{majors[1]}>"
    return f"""\
!c = !tile.tensor<f32, gmem, align<16>, "({rows},{columns}):({columns},1)">
gpu.module @m {{
tile.kernel @k(%C: !c, %n: i32) threads({128 * groups}) {{
  %t = gpu.thread_id x
  %sA = tile.alloc : !tile.tensor<f16, smem, align<1024>, "{layouts[0]}">
  %sB = tile.alloc : !tile.tensor<f16, smem, align<1024>, "{layouts[1]}">
  %bar = ptx.smem.alloc 64 align 8
  %mma = tile.tiled_mma #tile.mma_atom<"{atom}"> atoms "({groups},1,1):(1,0,0)"
  %tA = tile.partition_A %mma, %sA, %t
  %tB = tile.partition_B %mma, %sB, %t
  %tC = tile.partition_C %mma, %C, %t
  %rA = tile.make_fragment_A %mma, %tA
  %rB = tile.make_fragment_B %mma, %tB
  %acc = tile.make_fragment_C %mma, %tC
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %even = arith.constant 0 : i32
  %s8 = arith.constant 8 : i32
  %ni = arith.index_cast %n : i32 to index
  scf.for %i = %c0 to %ni step %c1 {{
    %stage = arith.andi %i, %c3 : index
    %si = arith.index_cast %stage : index to i32
    %later = arith.cmpi ne, %i, %c0 : index
    %at = arith.muli %si, %s8 : i32
    %full = ptx.ptr_add %bar, %at : !ptx.ptr<shared>, i32 -> !ptx.ptr<shared>
    ptx.mbarrier.wait %full, %even
    %a = tile.slice %rA, (_, _, _, %stage)
    %b = tile.slice %rB, (_, _, _, %stage)
    ptx.wgmma.fence
    tile.gemm %mma, %a, %b, %acc accumulate %later
    ptx.wgmma.commit_group
    ptx.wgmma.wait_group 1
  }}
  ptx.wgmma.wait_group 0
  tile.copy %acc, %tC
  tile.return
}}
}}
"""


def instructions(text: str) -> list[str]:
    """The instructions of the loop that multiplies, in order: what stands between its label and its branch back."""
    names = [match for match in re.findall(r"^(\.L_x_\d+):|^\s+/\*[0-9a-f]{4,}\*/\s+(.*?);", text, re.MULTILINE)]
    lines = [label or line for label, line in names]
    multiplying = [index for index, line in enumerate(lines) if "HGMMA" in line]
    for end in range(multiplying[-1], len(lines)):
        back = re.search(r"BRA `\((\.L_x_\d+)\)", lines[end])
        if back is not None and lines.index(back[1]) < multiplying[0]:
            return [line for line in lines[lines.index(back[1]) : end + 1] if not line.startswith(".L")]
    raise AssertionError("no loop multiplies")


@pytest.mark.parametrize(
    ("rows", "columns", "majors", "groups"),
    [(128, 256, ("K", "K"), 2), (128, 256, ("MN", "MN"), 2), (64, 128, ("K", "MN"), 1), (128, 128, ("MN", "K"), 1)],
)
def test_the_loop_multiplies_and_does_little_else(
    rows: int, columns: int, majors: tuple[str, str], groups: int
) -> None:
    module = lowered(loop(rows, columns, majors, groups), "instr", "sm_90a")
    cubin = assemble(compile_llvm(emit_llvm(module, SM90A), SM90A), SM90A)
    used = cubin.kernels["k"]
    assert used.stack == used.spill_stores == used.spill_loads == 0
    found = instructions(disassemble(cubin.code))
    executions = rows // (64 * groups) * 4
    assert sum("HGMMA" in line for line in found) == executions
    uniform = [line for line in found if re.match(r"(@!?U?P\d+ )?U[A-Z]|HGMMA|WARPGROUP|SYNCS|BRA|@!?P\d+ BRA", line)]
    others = [line for line in found if line not in uniform]
    assert len(found) <= 14 + 8 * executions, found
    assert len(others) <= 8, others
    assert not any(re.search(r"R2UR|LDL|STL|\bMOV R\d+, R\d+", line) for line in found), found
