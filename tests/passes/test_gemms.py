# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Multiplications from stage to stage: the lines that matter."""

import pytest
from tilefold.compiler.frontend.diagnostics import ProgramError

from tests.passes.harness import apply, check_pass, check_same, kernel, lowered, printed

ATOM = '#tile.mma_atom<"SM80_16x8x16_F32F16F16F32_TN">'


def fragments(m: int, n: int, k: int) -> str:
    """Fragments of a multiplication by m x n x k executions."""
    return f"""\
%a = tile.alloc : !tile.tensor<f16, rmem, align<16>, "(8,{m},{k}):(1,8,{8 * m})">
%b = tile.alloc : !tile.tensor<f16, rmem, align<16>, "(4,{n},{k}):(1,4,{4 * n})">
%c = tile.alloc : !tile.tensor<f32, rmem, align<16>, "(4,{m},{n}):(1,4,{4 * m})">
"""


def test_fold_layouts_leaves_allocations_and_the_atom() -> None:
    check_pass(
        "fold-layouts,cse",
        kernel(
            f'%t = gpu.thread_id x\n%m = tile.tiled_mma {ATOM} permute "(32,8,16)"\n'
            "%p = tile.partition_A %m, %A, %t\n%q = tile.partition_B %m, %B, %t\n%r = tile.partition_C %m, %C, %t\n"
            "%a = tile.make_fragment_A %m, %p\n%b = tile.make_fragment_B %m, %q\n%c = tile.make_fragment_C %m, %r\n"
            "tile.gemm %m, %a, %b, %c",
            ", ".join(
                f'%{name}: !tile.tensor<f16, gmem, align<16>, "{layout}">'
                for name, layout in (("A", "(32,16):(16,1)"), ("B", "(8,16):(16,1)"), ("C", "(32,8):(8,1)"))
            ),
        ),
        f"""
        // CHECK-NOT: tile.tiled_mma
        // CHECK-NOT: tile.crd2idx
        // CHECK: %a = tile.alloc : !tile.tensor<f16, rmem, align<16>, "((2,2,2),2,1):((1,2,4),8,0)">
        // CHECK-NOT: tile.make_fragment
        // CHECK: tile.gemm {ATOM} %a, %b, %c
        """,
    )


def test_expand_gemms_turns_at_the_ends() -> None:
    check_pass(
        "expand-gemms,cse",
        kernel(f"{fragments(2, 3, 2)}tile.gemm {ATOM} %a, %b, %c"),
        f"""
        // CHECK: scf.for [[K:%[0-9a-z]+]] =
        // CHECK: [[A:%[0-9a-z]+]] = tile.view %a at
        // CHECK: [[B:%[0-9a-z]+]] = tile.view %b at
        // CHECK: scf.for [[N:%[0-9a-z]+]] =
        // CHECK: [[LOW:%[0-9a-z]+]] = arith.andi [[N]],
        // CHECK-NEXT: [[ODD:%[0-9a-z]+]] = arith.cmpi eq, [[LOW]],
        // CHECK: scf.for [[I:%[0-9a-z]+]] =
        // CHECK-NEXT: [[BACK:%[0-9a-z]+]] = arith.subi {{{{%[0-9a-z]+}}}}, [[I]]
        // CHECK-NEXT: [[M:%[0-9a-z]+]] = arith.select [[ODD]], [[BACK]], [[I]]
        // CHECK: tile.crd2idx ([[M]]) in
        // CHECK: tile.mma_call {ATOM} [[D:%[0-9a-z]+]], {{{{%[0-9a-z]+}}}}, {{{{%[0-9a-z]+}}}}, [[D]]
        // CHECK-NEXT: }} {{unroll}}
        """,
    )


def test_expand_gemms_adds_the_first_product_to_c_and_the_others_to_d() -> None:
    text = kernel(f'{fragments(1, 1, 3)}%d = tile.alloc : !tile.tensor<f32, rmem, align<16>, "(4,1,1):(1,4,4)">\n'
                  f"tile.gemm {ATOM} %d, %a, %b, %c")  # fmt: skip
    check_pass(
        "expand-gemms,cse",
        text,
        f"""
        // CHECK: [[C:%[0-9a-z]+]] = tile.view %c
        // CHECK: [[D:%[0-9a-z]+]] = tile.view %d
        // CHECK: tile.mma_call {ATOM} [[D]], {{{{%[0-9a-z]+}}}}, {{{{%[0-9a-z]+}}}}, [[C]]
        // CHECK: scf.for
        // CHECK-NOT: tile.view %c
        // CHECK: tile.mma_call {ATOM} [[D]], {{{{%[0-9a-z]+}}}}, {{{{%[0-9a-z]+}}}}, [[D]]
        """,
    )


def test_a_single_execution_needs_no_loop() -> None:
    module = apply(kernel(f"{fragments(1, 1, 1)}tile.gemm {ATOM} %a, %b, %c"), "expand-gemms,cse")
    assert "scf.for" not in printed(module)


def test_instructions_are_on_registers_of_the_atom() -> None:
    text = printed(lowered(kernel(f"{fragments(1, 1, 1)}tile.gemm {ATOM} %a, %b, %c"), "index"))
    assert 'ptx.mma.sync "SM80_16x8x16_F32F16F16F32_TN" (%' in text
    assert text.count("!ptx.ptr<local> -> vector<2xf16>") == 6  # each is bits of one register
    assert text.count("!ptx.ptr<local> -> f32") == 4
    assert text.count("f32, !ptx.ptr<local>") == 4


def test_multiply_adds_are_arithmetic() -> None:
    text = printed(lowered(kernel(
        '%a = tile.alloc : !tile.tensor<f64, rmem, align<16>, "2:1">\n'
        '%c = tile.alloc : !tile.tensor<f64, rmem, align<16>, "(2,2):(1,2)">\ntile.gemm %a, %a, %c'
    ), "index"))  # fmt: skip
    assert text.count("math.fma") == 1
    assert "ptx.mma.sync" not in text


@pytest.mark.parametrize("stage", ["cute", "folded", "atoms", "instr"])
def test_an_instruction_that_the_target_lacks_is_refused_at_every_stage(stage: str) -> None:
    name = "SM89_16x8x32_F32E4M3E4M3F32_TN"
    allocate = '%{} = tile.alloc : !tile.tensor<{}, rmem, align<16>, "{}">\n'
    body = "".join(
        allocate.format(*each) for each in (("a", "f8E4M3FN", "16:1"), ("b", "f8E4M3FN", "8:1"), ("c", "f32", "4:1"))
    )
    text = printed(lowered(kernel(f'{body}tile.gemm #tile.mma_atom<"{name}"> %a, %b, %c'), stage, "sm_90a"))
    apply(text, "check-target{target=sm_89}")
    with pytest.raises(ProgramError) as caught:
        apply(text, "check-target{target=sm_80}")
    assert caught.value.code == "E2102"
    assert "needs sm_89" in caught.value.message


@pytest.mark.parametrize("program", ["tests/mutants/programs/product.cute", "examples/hgemm.cute"])
def test_programs_do_the_same(program: str) -> None:
    check_same(program, "fold-layouts,expand-gemms")
