# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Multiplications by warpgroups from stage to stage: the lines that matter."""

import pytest
from tilefold.compiler.frontend.diagnostics import ProgramError

from tests.passes.harness import apply, check_pass, kernel, lowered, printed

ATOM = '#tile.mma_atom<"SM90_64x64x16_F32F16F16_SS<Major::K,Major::K>">'
RS = '#tile.mma_atom<"SM90_64x64x16_F32F16F16_RS<Major::K,Major::K>">'
STAGES = "S<3,3,3> o 0 o ((8,16),(64,1),(1,4)):((64,512),(1,0),(0,8192))"
GEMM = f"""\
%t = gpu.thread_id x
%s = tile.alloc : !tile.tensor<f16, smem, align<1024>, "{STAGES}">
%m = tile.tiled_mma {ATOM} atoms "(2,2,1):(1,2,0)"
%p = tile.partition_A %m, %s, %t
%q = tile.partition_B %m, %s, %t
%c = tile.alloc : !tile.tensor<f32, rmem, align<16>, "((2,2,8),1,1):((1,2,4),0,0)">
%i = arith.index_cast %n : i32 to index
%z = arith.constant 0 : i32
%again = arith.cmpi ne, %n, %z : i32
%f = tile.make_fragment_A %m, %p
%h = tile.make_fragment_B %m, %q
%a = tile.slice %f, (_, _, _, %i)
%b = tile.slice %h, (_, _, _, %i)
ptx.wgmma.fence
tile.gemm %m, %a, %b, %c accumulate %again
"""


def text(body: str, threads: int = 512) -> str:
    """A kernel of an i32 %n for blocks of so many threads."""
    return kernel(body, "%n: i32").replace("threads(32)", f"threads({threads})")


def test_parts_in_shared_memory_stay_views_of_it() -> None:
    check_pass(
        "fold-layouts,cse",
        text(GEMM),
        f"""
        // CHECK: %p = tile.view %s at
        // CHECK: %q = tile.view %s at
        // CHECK-NOT: make_fragment
        // CHECK: tile.gemm {ATOM} %a, %b, %c accumulate %again
        """,
    )


def test_each_k_accumulates_but_perhaps_the_first() -> None:
    check_pass(
        "fold-layouts,cse,expand-gemms,cse",
        text(GEMM),
        f"""
        // CHECK: scf.for [[K:%[0-9a-z]+]] =
        // CHECK: [[LATER:%[0-9a-z]+]] = arith.cmpi ne, [[K]],
        // CHECK-NEXT: [[ON:%[0-9a-z]+]] = arith.ori %again, [[LATER]] : i1
        // CHECK-NOT: tile.copy
        // CHECK: tile.mma_call {ATOM} [[D:%[0-9a-z]+]], {{{{%[0-9a-z]+}}}}, {{{{%[0-9a-z]+}}}}, [[D]] accumulate [[ON]]
        """,
    )


def test_k_is_the_outermost_loop_and_columns_do_not_turn() -> None:
    body = f"""\
%a = tile.alloc : !tile.tensor<f16, smem, align<1024>, "S<3,3,3> o 0 o ((64,16),2,4):((64,1),4096,16)">
%b = tile.alloc : !tile.tensor<f16, smem, align<1024>, "S<3,3,3> o 0 o ((64,16),3,4):((64,1),4096,16)">
%c = tile.alloc : !tile.tensor<f32, rmem, align<16>, "((2,2,8),2,3):((1,2,4),32,64)">
tile.gemm {ATOM} %a, %b, %c
"""
    check_pass(
        "expand-gemms,cse",
        text(body, 128),
        """
        // CHECK: [[KS:%[0-9a-z]+]] = arith.constant 4
        // CHECK: scf.for [[K:%[0-9a-z]+]] = {{%[0-9a-z]+}} to [[KS]]
        // CHECK: [[MS:%[0-9a-z]+]] = arith.constant 2
        // CHECK: scf.for [[M:%[0-9a-z]+]] = {{%[0-9a-z]+}} to [[MS]]
        // CHECK: [[NS:%[0-9a-z]+]] = arith.constant 3
        // CHECK: scf.for [[N:%[0-9a-z]+]] = {{%[0-9a-z]+}} to [[NS]]
        // CHECK-NOT: arith.select
        // CHECK: tile.crd2idx ([[M]], [[K]]) in "(2,4):(4096,16)"
        // CHECK: tile.crd2idx ([[N]], [[K]]) in "(3,4):(4096,16)"
        // CHECK: tile.crd2idx ([[M]], [[N]]) in "(2,3):(32,64)"
        """,
    )


def test_descriptors_are_a_base_and_distances() -> None:
    """The part that depends on the thread is taken from one lane, where it is defined."""
    index = printed(lowered(text(GEMM), "index", "sm_90a"))
    before, _, loop = index.partition("scf.for")
    assert before.count("ptx.shfl.sync") == 2
    assert loop.count("ptx.wgmma.descriptor") == 1
    assert "ptx.ptr_add %s, %z within" in loop, "the stage is checked"
    assert loop.count("ptx.shfl.sync") == loop.count("arith.xori") == 0
    assert 'ptx.wgmma.mma_async "SM90_64x64x16_F32F16F16_SS<Major::K,Major::K>" %c, ' in loop


def test_registers_of_a_are_passed_by_their_address() -> None:
    body = f"""\
%a = tile.alloc : !tile.tensor<f16, rmem, align<16>, "((2,2,2),1,4):((1,2,4),0,8)">
%b = tile.alloc : !tile.tensor<f16, smem, align<1024>, "S<3,3,3> o 0 o ((64,16),1,4):((64,1),0,16)">
%c = tile.alloc : !tile.tensor<f32, rmem, align<16>, "((2,2,8),1,1):((1,2,4),0,0)">
tile.gemm {RS} %a, %b, %c
"""
    index = printed(lowered(text(body, 128), "index", "sm_90a"))
    assert "arith.constant true" in index  # it accumulates
    assert ": !ptx.ptr<local>" in next(line for line in index.splitlines() if "ptx.wgmma.mma_async" in line)


@pytest.mark.parametrize("target", ["sm_80", "sm_90", "sm_100a"])
@pytest.mark.parametrize("stage", ["cute", "folded", "atoms", "index", "instr"])
def test_other_targets_are_refused_at_every_stage(stage: str, target: str) -> None:
    program = printed(lowered(text(GEMM), stage, "sm_90a"))
    with pytest.raises(ProgramError) as caught:
        apply(program, f"check-target{{target={target}}}")
    assert caught.value.code == "E2102"
    assert "sm_90a only" in caught.value.message
