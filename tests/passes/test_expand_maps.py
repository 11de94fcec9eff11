# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What `expand-maps` writes."""

from tests.passes.harness import check_pass, check_same, kernel


def test_a_map_becomes_loops_over_its_modes() -> None:
    check_pass(
        "expand-maps",
        kernel(
            '%a = tile.alloc : !tile.tensor<f32, rmem, align<16>, "((2,2),1,3):((1,2),0,4)">\n'
            '%b = tile.alloc : !tile.tensor<f16, rmem, align<16>, "(4,1,3):(3,0,1)">\n'
            "tile.map %b, %a (%x: f32) {\n%h = arith.truncf %x : f32 to f16\ntile.yield %h : f16\n}",
            "",
        ),
        """
        // CHECK: scf.for [[J:%[0-9a-z]+]] =
        // CHECK: scf.for [[I:%[0-9a-z]+]] =
        // CHECK-NEXT: %x = tile.load %a([[I]], 0, [[J]])
        // CHECK-NEXT: %h = arith.truncf %x : f32 to f16
        // CHECK-NEXT: tile.store %h, %b([[I]], 0, [[J]])
        // CHECK-NEXT: } {unroll}
        // CHECK-NEXT: } {unroll}
        // CHECK-NOT: tile.map
        """,
    )


def test_a_fill_of_one_element_is_a_store() -> None:
    check_pass(
        "expand-maps",
        kernel('%a = tile.alloc : !tile.tensor<i32, rmem, align<4>, "(1,1):(0,0)">\ntile.fill %a, %n', "%n: i32"),
        """
        // CHECK-NOT: scf.for
        // CHECK: tile.store %n, %a(0, 0)
        """,
    )


def test_a_program_does_the_same() -> None:
    check_same("examples/softmax.cute", "fold-layouts,expand-copies,expand-maps")
