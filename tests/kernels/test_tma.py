# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tiles by TMA copies: what arrives is what was sent, at every stage, for layouts, swizzles and elements of many
kinds.
"""

from dataclasses import dataclass

import numpy as np
import pytest
from tilefold.base.target import Target

from tests.kernels.harness import STAGES, assert_checks_hold, program_of, simulate
from tilefold.driver.launches import Changes, read_launches

HOPPER = Target("sm_90a")


@dataclass(frozen=True)
class Case:
    """A tensor in global memory, the tiler, the tiles of the grid, and the layout of a tile in shared memory."""

    gmem: str
    tiler: str
    grid: tuple[int, ...]
    smem: str
    element: str = "f16"
    type: str = ""
    """The layout in the kernel's type, where that is not the tensor's."""
    instructions: int = 1

    @property
    def bytes(self) -> int:
        """The bytes of a tile."""
        return int(np.prod([int(n) for n in self.tiler.replace("(", "").replace(")", "").split(",")])) * {
            "f16": 2, "bf16": 2, "f32": 4, "i8": 1, "f64": 8, "f8E4M3FN": 1, "i32": 4,
        }[self.element]  # fmt: skip


CASES = {
    "K-major, 128 bytes": Case("(256,128):(128,1)", "(128,64)", (2, 2), "S<3,3,3> o 0 o (128,64):(64,1)"),
    "K-major, 2 instructions": Case(
        "(128,256):(256,1)", "(128,128)", (1, 2), "S<3,3,3> o 0 o (128,(64,2)):(64,(1,8192))", instructions=2
    ),
    "64 bytes": Case("(128,64):(64,1)", "(64,32)", (2, 2), "S<2,3,3> o 0 o (64,32):(32,1)"),
    "32 bytes": Case("(128,64):(64,1)", "(64,16)", (2, 4), "S<1,3,3> o 0 o (64,16):(16,1)"),
    "a tensor of one tile's rows": Case("(16,16):(16,1)", "(8,16)", (2, 1), "S<1,3,3> o 0 o (8,16):(16,1)"),
    "no swizzle": Case("(64,64):(64,1)", "(32,64)", (2, 1), "(32,64):(64,1)"),
    "core matrices": Case("(64,64):(64,1)", "(32,64)", (2, 1), "(32,(8,8)):(8,(1,256))", instructions=8),
    "MN-major, default order": Case(
        "(128,64):(1,128)", "(128,64)", (1, 1), "S<3,3,3> o 0 o ((64,2),(8,8)):((1,512),(64,1024))", instructions=16
    ),
    "MN-major, other order": Case(
        "(128,64):(1,128)", "(128,64)", (1, 1), "S<3,3,3> o 0 o ((64,2),64):((1,4096),64)", instructions=2
    ),
    "batches": Case("(64,64,3):(64,1,4096)", "(64,64,1)", (1, 1, 3), "S<3,3,3> o 0 o (64,64,1):(64,1,0)"),
    "rows of heads": Case("((8,16),64):((64,512),1)", "((8,4),64)", (4, 1), "S<3,3,3> o 0 o ((8,4),64):((64,512),1)"),
    "heads in the last mode": Case(
        "(64,32,(4,2)):(1,64,(2048,8192))", "(64,32,1)", (1, 1, 8), "S<3,3,3> o 0 o (64,32,1):(1,64,0)"
    ),
    "five dimensions": Case(
        "(16,4,2,2,2):(1,16,64,128,256)", "(16,4,1,1,1)", (1, 1, 2, 2, 2), "(16,4,1,1,1):(1,16,0,0,0)"
    ),
    "one dimension": Case("(512):(1)", "(128)", (4,), "(128):(1)"),
    "extents at run time": Case(
        "(100,72):(80,1)", "(64,64)", (2, 2), "S<3,3,3> o 0 o (64,64):(64,1)", type="(?,?):(?{div=8},1)"
    ),
    "rows at run time": Case(
        "(100,72):(72,1)", "(32,24)", (4, 3), "(32,24):(24,1)", element="f32", type="(?,72):(72,1)"
    ),
    "batches at run time": Case(
        "(40,64,3):(1,40,2560)", "(64,16,1)", (1, 4, 3), "(64,16,1):(1,64,0)", type="(?,?,?):(1,?{div=8},?{div=8})"
    ),
    "f32": Case("(64,64):(64,1)", "(32,32)", (2, 2), "S<3,2,3> o 0 o (32,32):(32,1)", element="f32"),
    "i8": Case("(64,128):(128,1)", "(32,128)", (2, 1), "S<3,4,3> o 0 o (32,128):(128,1)", element="i8"),
    "f64": Case("(32,32):(32,1)", "(16,16)", (2, 2), "S<3,1,3> o 0 o (16,16):(16,1)", element="f64"),
}


def text_of(case: Case) -> str:
    """A kernel whose blocks copy a tile of A to B each, through shared memory."""
    rank = len(case.grid)
    names = ["%x", "%y", "%z", "%v", "%w"][:rank]
    sizes = [(case.grid[2:] or (1,))[i] if i < rank - 2 else 1 for i in range(3)]
    where = [
        "%x = gpu.block_id x", "%y = gpu.block_id y", "%d = gpu.block_id z", f"%n0 = arith.constant {sizes[0]} : index",
        f"%n1 = arith.constant {sizes[1]} : index", "%z = arith.remui %d, %n0 : index",
        "%r = arith.divui %d, %n0 : index", "%v = arith.remui %r, %n1 : index", "%w = arith.divui %r, %n1 : index",
    ]  # fmt: skip
    align = {"S<3": 1024, "S<2": 512, "S<1": 256}.get(case.smem[:3], 128)
    smem = f'!tile.tensor<{case.element}, smem, align<{align}>, "{case.smem}">'
    gmem = f'!tile.tensor<{case.element}, gmem, align<16>, "{case.gmem}">'
    type = f'!tile.tensor<{case.element}, gmem, align<16>, "{case.type or case.gmem}">'
    maps: list[str] = []
    for name, tensor, kind in (("a", "A", "LOAD"), ("b", "B", "STORE")):
        maps += [
            f'%{name} = tile.tensor_map "SM90_TMA_{kind}" %{tensor} smem "{case.smem}" tiler "{case.tiler}"',
            f"%{name}0 = tile.tma_tensor %{name}",
            f'%{name}1 = tile.local_tile %{name}0, "{case.tiler}", ({", ".join(names)}) ragged',
            f"%{name}2 = tile.group_modes %{name}1, [0, {rank}]",
            f'%{name}3 = tile.tma_partition %{name}, %{name}2, 0 in "1:0"',
            f'%{name}4 = tile.tma_partition %{name}, %s0, 0 in "1:0"',
        ]
    z = int(np.prod(case.grid[2:], dtype=int))
    grid = [case.grid[0], case.grid[1] if rank > 1 else 1, z]
    body = "\n".join([*where, *maps])
    return f"""
gpu.module @m {{
tile.kernel @k(%A: {type}, %B: {type}) threads(32) {{
%t = gpu.thread_id x
%zero = arith.constant 0 : index
%leads = arith.cmpi eq, %t, %zero : index
%one = arith.constant 1 : i32
%even = arith.constant 0 : i32
%bytes = arith.constant {case.bytes} : i32
%s = tile.alloc : {smem}
%s0 = tile.group_modes %s, [0, {rank}]
%bars = tile.alloc : !tile.tensor<i64, smem, align<8>, "1:1">
%bar = tile.ptr %bars(0)
{body}
scf.if %leads {{
ptx.mbarrier.init %bar, %one
ptx.fence.mbarrier_init
tile.prefetch %a
tile.prefetch %a, %a3
ptx.mbarrier.arrive.expect_tx %bar, %bytes
tile.copy %a, %a3, %a4 mbarrier %bar
ptx.mbarrier.wait %bar, %even
tile.copy %b, %b4, %b3
ptx.cp.async.bulk.commit_group
ptx.cp.async.bulk.wait_group 0 read
}}
tile.return
}}
}}
run.launch @m::@k grid({grid[0]}, {grid[1]}, {grid[2]}) {{
run.arg "A" : {gmem} = "arange"
run.arg "B" : {gmem} = "{"zeros" if case.element == "i8" else "poison"}"
run.check "B == A"
}}
"""


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_tiles_arrive_at_every_stage(case: Case) -> None:
    program = program_of(text_of(case))
    (launch,) = read_launches(program.module, program.source, Changes())
    for stage in STAGES:
        assert_checks_hold(launch, simulate(program, launch, stage, HOPPER).after)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_tile_takes_as_many_instructions_as_its_layout_asks_for(case: Case) -> None:
    ptx = program_of(text_of(case)).ptx(HOPPER)
    lines = [line for line in ptx.splitlines() if "cp.async.bulk.tensor." in line]
    assert sum("shared::cluster.global" in line for line in lines) == case.instructions
    assert sum("global.shared::cta" in line for line in lines) == case.instructions


_HEAD = """
%t = gpu.thread_id x
%zero = arith.constant 0 : index
%leads = arith.cmpi eq, %t, %zero : index
%one = arith.constant 1 : i32
%even = arith.constant 0 : i32
%bars = tile.alloc : !tile.tensor<i64, smem, align<8>, "1:1">
%bar = tile.ptr %bars(0)
"""

MULTICAST = f"""
!a = !tile.tensor<f16, gmem, align<16>, "(192,64):(64,1)">
!b = !tile.tensor<f16, gmem, align<16>, "(192,64,2):(64,1,12288)">
gpu.module @m {{
tile.kernel @k(%A: !a, %B: !b) threads(32) cluster(2, 1, 1) {{{_HEAD}
%m = gpu.block_id y
%r = ptx.sreg "cluster_ctarank"
%rank = arith.index_cast %r : i32 to index
%bytes = arith.constant 8192 : i32
%both = arith.constant 3 : i16
%s = tile.alloc : !tile.tensor<f16, smem, align<1024>, "S<3,3,3> o 0 o ((64,64)):((64,1))">
%a = tile.tensor_map "SM90_TMA_LOAD_MULTICAST" %A smem "S<3,3,3> o 0 o (64,64):(64,1)" multicast 2
%a0 = tile.tma_tensor %a
%a1 = tile.local_tile %a0, "(64,64)", (%m, 0)
%a2 = tile.group_modes %a1, [0, 2]
%from = tile.tma_partition %a, %a2, %rank in "2:1"
%to = tile.tma_partition %a, %s, %rank in "2:1"
%b = tile.tensor_map "SM90_TMA_STORE" %B smem "S<3,3,3> o 0 o (64,64,1):(64,1,0)" tiler "(64,64,1)"
%b0 = tile.tma_tensor %b
%b1 = tile.local_tile %b0, "(64,64,1)", (%m, 0, %rank)
%b2 = tile.group_modes %b1, [0, 3]
%out = tile.tma_partition %b, %b2, 0 in "1:0"
%back = tile.tma_partition %b, %s, 0 in "1:0"
scf.if %leads {{
ptx.mbarrier.init %bar, %one
ptx.fence.mbarrier_init
}}
ptx.barrier.cluster.arrive aligned
ptx.barrier.cluster.wait aligned
scf.if %leads {{
ptx.mbarrier.arrive.expect_tx %bar, %bytes
tile.copy %a, %from, %to mbarrier %bar multicast %both
ptx.mbarrier.wait %bar, %even
tile.copy %b, %back, %out
ptx.cp.async.bulk.commit_group
ptx.cp.async.bulk.wait_group 0 read
}}
ptx.barrier.cluster.arrive aligned
ptx.barrier.cluster.wait aligned
tile.return
}}
}}
run.launch @m::@k grid(2, 3) {{
run.arg "A" : !a = "arange"
run.arg "B" : !b = "poison"
run.check "B == broadcast_to(reshape(A, (192, 64, 1)), (192, 64, 2))"
}}
"""


def _reduction(element: str, kind: str, check: str) -> str:
    return f"""
!a = !tile.tensor<{element}, gmem, align<16>, "(64,32):(32,1)">
!s = !tile.tensor<{element}, smem, align<128>, "((32,32)):((32,1))">
gpu.module @m {{
tile.kernel @k(%A: !a, %B: !a) threads(32) {{{_HEAD}
%m = gpu.block_id x
%bytes = arith.constant {1024 * (4 if element in ("f32", "i32") else 2)} : i32
%s = tile.alloc : !s
%a = tile.tensor_map "SM90_TMA_LOAD" %A smem "(32,32):(32,1)"
%b = tile.tensor_map "SM90_TMA_REDUCE_{kind}" %B smem "(32,32):(32,1)"
%a0 = tile.tma_tensor %a
%b0 = tile.tma_tensor %b
%a1 = tile.local_tile %a0, "(32,32)", (%m, 0)
%b1 = tile.local_tile %b0, "(32,32)", (0, 0)
%a2 = tile.group_modes %a1, [0, 2]
%b2 = tile.group_modes %b1, [0, 2]
%from = tile.tma_partition %a, %a2, 0 in "1:0"
%to = tile.tma_partition %a, %s, 0 in "1:0"
%back = tile.tma_partition %b, %s, 0 in "1:0"
%out = tile.tma_partition %b, %b2, 0 in "1:0"
scf.if %leads {{
ptx.mbarrier.init %bar, %one
ptx.fence.mbarrier_init
ptx.mbarrier.arrive.expect_tx %bar, %bytes
tile.copy %a, %from, %to mbarrier %bar
ptx.mbarrier.wait %bar, %even
tile.copy %b, %back, %out
ptx.cp.async.bulk.commit_group
ptx.cp.async.bulk.wait_group 0 read
}}
tile.return
}}
}}
run.launch @m::@k grid(2) {{
run.arg "A" : !a = "arange"
run.arg "B" : !a = "{"ones" if kind == "ADD" else "arange"}"
run.check "{check}"
}}
"""


REDUCTIONS = {
    "add f32": _reduction("f32", "ADD", "B[:32] == A[:32] + A[32:] + 1"),
    "add i32": _reduction("i32", "ADD", "B[:32] == A[:32] + A[32:] + 1"),
    "max i32": _reduction("i32", "MAX", "B[:32] == A[32:]"),
    "min bf16": _reduction("bf16", "MIN", "B == A"),
    "or i32": _reduction("i32", "OR", "B[:32] == A[:32] + 32"),
}


@pytest.mark.parametrize("text", [MULTICAST, *REDUCTIONS.values()], ids=["multicast", *REDUCTIONS])
def test_multicasts_and_reductions_at_every_stage(text: str) -> None:
    program = program_of(text)
    (launch,) = read_launches(program.module, program.source, Changes())
    for stage in STAGES:
        assert_checks_hold(launch, simulate(program, launch, stage, HOPPER).after)
