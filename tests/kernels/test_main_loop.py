# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# ruff: noqa: E501 - the lines of a kernel
"""The main loop of a pipelined multiplication: beside what moves and multiplies data there is next to nothing in it."""

import re
from collections import Counter

import pytest
from tilefold.base.target import Target

from tests.kernels.harness import program_of

# A ring of stages in swizzled shared memory, filled by cp.async and read by ldmatrix; two warps by two.
KERNEL = """\
// param STAGES = 3
!A = !tile.tensor<f16, gmem, align<16>, "(4096,4096):(4096,1)">
!C = !tile.tensor<f32, gmem, align<16>, "(4096,4096):(4096,1)">
!smem = !tile.tensor<f16, smem, align<1024>, "S<3,3,3> o 0 o (128,64,${STAGES}):(64,1,8192)">

gpu.module @kernels {
  tile.kernel @k(%A: !A, %B: !A, %C: !C) threads(128) {
    %t = gpu.thread_id x
    %m = gpu.block_id x
    %n = gpu.block_id y
    %gA = tile.local_tile %A, "(128,64)", (%m, _)
    %gB = tile.local_tile %B, "(128,64)", (%n, _)
    %gC = tile.local_tile %C, "(128,128)", (%m, %n)
    %sA = tile.alloc : !smem
    %sB = tile.alloc : !smem
    %g2s = tile.tiled_copy #tile.copy_atom<"SM80_CP_ASYNC_CACHEGLOBAL<uint128_t>", f16> thr "(16,8):(8,1)" val "(1,8):(8,1)"
    %tAgA = tile.partition_S %g2s, %gA, %t
    %tBgB = tile.partition_S %g2s, %gB, %t
    %tAsA = tile.partition_D %g2s, %sA, %t
    %tBsB = tile.partition_D %g2s, %sB, %t
    %mma = tile.tiled_mma #tile.mma_atom<"SM80_16x8x16_F32F16F16F32_TN"> atoms "(2,2,1):(1,2,4)" permute "(32,32,16)"
    %tCsA = tile.partition_A %mma, %sA, %t
    %tCsB = tile.partition_B %mma, %sB, %t
    %tCgC = tile.partition_C %mma, %gC, %t
    %sA0 = tile.slice %tCsA, (_, _, _, 0)
    %sB0 = tile.slice %tCsB, (_, _, _, 0)
    %rA = tile.make_fragment_A %mma, %sA0
    %rB = tile.make_fragment_B %mma, %sB0
    %acc = tile.make_fragment_C %mma, %tCgC
    %zero = arith.constant 0.0 : f32
    tile.fill %acc, %zero
    %s2rA = tile.tiled_copy #tile.copy_atom<"SM75_U32x4_LDSM_N", f16> A %mma
    %s2rB = tile.tiled_copy #tile.copy_atom<"SM75_U32x4_LDSM_N", f16> B %mma
    %tXsA = tile.partition_S %s2rA, %sA, %t
    %tXsB = tile.partition_S %s2rB, %sB, %t
    %tXrA = tile.retile_D %s2rA, %rA
    %tXrB = tile.retile_D %s2rB, %rB
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %count = arith.constant 64 : index
    %ahead = arith.constant ${STAGES - 1} : index
    %stages = arith.constant ${STAGES} : index
    %end:2 = scf.for %k = %c0 to %count step %c1 iter_args(%read = %c0, %write = %ahead) -> (index, index) {
      ptx.cp.async.wait_group ${STAGES - 2}
      ptx.bar.sync 0
      %from = tile.slice %tAgA, (_, _, _, %k)
      %to = tile.slice %tAsA, (_, _, _, %write)
      tile.copy %g2s, %from, %to
      %fromB = tile.slice %tBgB, (_, _, _, %k)
      %toB = tile.slice %tBsB, (_, _, _, %write)
      tile.copy %g2s, %fromB, %toB
      ptx.cp.async.commit_group
      %fA = tile.slice %tXsA, (_, _, _, %read)
      %fB = tile.slice %tXsB, (_, _, _, %read)
      tile.copy %s2rA, %fA, %tXrA
      tile.copy %s2rB, %fB, %tXrB
      tile.gemm %mma, %rA, %rB, %acc
      %read1 = arith.addi %read, %c1 : index
      %write1 = arith.addi %write, %c1 : index
      %wrapR = arith.cmpi eq, %read1, %stages : index
      %wrapW = arith.cmpi eq, %write1, %stages : index
      %readN = arith.select %wrapR, %c0, %read1 : index
      %writeN = arith.select %wrapW, %c0, %write1 : index
      scf.yield %readN, %writeN : index, index
    }
    tile.copy %acc, %tCgC
    return
  }
}
"""


def _loop(ptx: str) -> list[str]:
    """The instructions from the first label to the last branch back."""
    lines = [line.strip() for line in ptx[ptx.index("$L") :].splitlines()]
    last = max(i for i, line in enumerate(lines) if "bra" in line)
    return [line for line in lines[: last + 1] if line.endswith(";")]


# The rows of a tile that lie within a matrix of run-time size.
INSIDE = """\
    %IX = tile.identity like %X
    %gXI = tile.local_tile %IX, "(128,64)", (%PLACE, _) ragged
    %tXI = tile.partition_S %g2s, %gXI, %t
    %tXI0 = tile.slice %tXI, (_, _, _, 0)
    %rowsX = tile.dim %X, 0
    %pX = tile.bounds %tXI0, (%rowsX, _)
"""


def ragged(text: str) -> str:
    """The kernel for matrices of any number of rows and any stride: rows beyond the last are filled with zeros."""
    text = text.replace('(4096,4096):(4096,1)">\n!C', '(?,?{div=8}):(?{div=8},1)">\n!C')
    text = text.replace("CACHEGLOBAL<uint128_t>", "CACHEGLOBAL_ZFILL<uint128_t>")
    for name, place, copied in (("A", "m", "%from, %to"), ("B", "n", "%fromB, %toB")):
        tile = f'tile.local_tile %{name}, "(128,64)", (%{place}, _)'
        assert tile in text
        text = text.replace(tile, f"{tile} ragged")
        text = text.replace("    %mma = ", INSIDE.replace("X", name).replace("PLACE", place) + "    %mma = ")
        text = text.replace(f"tile.copy %g2s, {copied}\n", f"tile.copy %g2s, {copied} if %p{name}\n")
    return text


def _names(loop: list[str]) -> Counter[str]:
    return Counter(re.sub(r"^@\S+\s+", "", line).split(None, 1)[0].rstrip(";") for line in loop)


@pytest.mark.parametrize("stages", [3, 4])
def test_addresses_are_a_base_and_an_immediate(stages: int) -> None:
    program = program_of(KERNEL.replace("STAGES = 3", f"STAGES = {stages}"))
    loop = _loop(program.ptx(Target("sm_90a")))
    names = _names(loop)
    moved = {name: names.pop(name) for name in list(names) if re.match(r"mma|ldmatrix|cp\.async|bar", name)}
    assert moved == {
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32": 128,
        "ldmatrix.sync.aligned.m8n8.x4.shared.b16": 32,
        "cp.async.cg.shared.global": 16,
        "cp.async.commit_group": 1,
        "cp.async.wait_group": 1,
        "bar.sync": 1,
    }
    # Of the swizzle nothing is left but a base for each of the four columns of matrices in A, and in B.
    bases = Counter(match[1] for line in loop if (match := re.search(r"ldmatrix.*\[(%r\d+)(?:\+\d+)?\];", line)))
    assert sorted(bases.values()) == [4] * 8
    assert not any(name.startswith(("xor", "and", "or", "shr", "mul", "mad", "div", "rem")) for name in names), names
    # Two shifts and adds for the stages, eight bases, two global pointers, the counters of stages and of the loop.
    assert names.total() <= 28, names
    assert sum(count for name, count in names.items() if name.endswith("64")) <= 4, names


def test_rows_of_run_time_stride_take_an_addition_each_and_no_comparison() -> None:
    names = _names(_loop(program_of(ragged(KERNEL)).ptx(Target("sm_90a"))))
    assert names["cp.async.cg.shared.global"] == 16
    assert names["add.s64"] <= 17
    assert sum(count for name, count in names.items() if name.startswith("setp")) <= 3
    assert not any(name.startswith(("xor", "and", "or", "shr", "mul", "mad", "div", "rem", "ld.")) for name in names), (
        names
    )
    plain = _names(_loop(program_of(KERNEL).ptx(Target("sm_90a"))))
    assert names.total() <= plain.total() + 16
