# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What each pass makes of a small program: the lines that matter."""

import pytest
from tilefold.compiler.frontend.diagnostics import ProgramError
from tilefold.compiler.pipeline import OUR_PASSES
from xdsl.dialects import scf

from tests.passes.harness import apply, check_pass, entry, kernel, lowered, printed

G = '!tile.tensor<f16, gmem, align<16>, "(64,32):(1,64)">'
TILE_ARGS = f"%A: {G}, %B: {G}"
PTX_ARGS = "%A: !ptx.ptr<global> align 16, %B: !ptx.ptr<global> align 16"


def test_fold_layouts_leaves_an_index_and_a_view() -> None:
    check_pass(
        "fold-layouts,cse",
        kernel('%t = gpu.block_id x\n%g = tile.local_tile %A, "(16,8)", (%t, 2)\ntile.print "g" %g', TILE_ARGS),
        """
        // CHECK: %t = gpu.block_id x
        // CHECK-NEXT: [[I:%[0-9a-z]+]] = tile.crd2idx (%t) in "(4):(16)"
        // CHECK-NEXT: [[C:%[0-9a-z]+]] = arith.constant 1024 : index
        // CHECK-NEXT: [[O:%[0-9a-z]+]] = arith.addi [[I]], [[C]] : index
        // CHECK-NEXT: %g = tile.view %A at [[O]] : !tile.tensor<f16, gmem, align<16>, "(16,8):(1,64)">
        // CHECK-NEXT: tile.print "g" %g
        """,
    )


def test_an_index_in_modes_that_coalesce_is_one_multiplication() -> None:
    """(16,4):(6,96) is 64:6; of (16,4,3):(6,96,1000) only the last mode stays apart."""
    args = (
        '%A: !tile.tensor<f32, gmem, align<16>, "((16,4),8):((6,96),1000)">, '
        '%B: !tile.tensor<f32, gmem, align<16>, "(16,4,3):(6,96,1000)">'
    )
    body = "%t = gpu.thread_id x\n%s = tile.slice %A, (%t, _)\n%x = tile.load %s(1)\ntile.store %x, %B(%t)"
    check_pass("fold-layouts", kernel(body, args), '// CHECK: tile.crd2idx (%t) in "(64):(6)"')
    check_pass(
        "fold-layouts,lower-tensors,cse",
        kernel(body, args),
        """
        // CHECK: [[BYTES:%[0-9a-z]+]] = arith.constant 24 : i32
        // CHECK-NEXT: arith.muli {{%[0-9a-z]+}}, [[BYTES]] : i32
        // CHECK-NOT: arith.remui
        // CHECK: ptx.ld
        // CHECK: arith.constant 64 : i32
        // CHECK: arith.remui
        // CHECK-NOT: arith.remui
        // CHECK: ptx.st
        """,
    )


def test_fold_layouts_of_static_views_leaves_no_arithmetic() -> None:
    check_pass(
        "fold-layouts,cse",
        kernel('%d = tile.zipped_divide %A, "(16,8)"\n%g = tile.slice %d, (_, (0, 0))\ntile.print "g" %g', TILE_ARGS),
        """
        // CHECK: tile.kernel
        // CHECK-NOT: arith.
        // CHECK-NOT: tile.crd2idx
        // CHECK: tile.return
        """,
    )


def test_fold_layouts_puts_the_atom_into_the_copy() -> None:
    check_pass(
        "fold-layouts,cse",
        kernel(
            '%t = gpu.thread_id x\n%c = tile.tiled_copy #tile.copy_atom<"UniversalCopy<uint128_t>", f16>'
            ' thr "(8,4):(1,8)" val "(8,1):(1,1)"\n%s = tile.partition_S %c, %A, %t\n%d = tile.partition_D %c, %B, %t\n'
            "tile.copy %c, %s, %d",
            TILE_ARGS,
        ),
        """
        // CHECK-NOT: tile.tiled_copy
        // CHECK: tile.copy #tile.copy_atom<"UniversalCopy<uint128_t>", f16> %s, %d
        """,
    )


def test_expand_copies_executes_the_atom_in_loops() -> None:
    part = '!tile.tensor<f16, {space}, align<16>, "((8,1),2,4):((1,0),{m},{k})">'
    source, target = part.format(space="gmem", m=64, k=512), part.format(space="smem", m=16, k=128)
    check_pass(
        "expand-copies",
        kernel(
            f"%s = tile.view %A : {source}\n%b = tile.alloc : {target}\n"
            'tile.copy #tile.copy_atom<"SM80_CP_ASYNC_CACHEALWAYS<uint128_t>", f16> %s, %b',
            TILE_ARGS,
        ),
        """
        // CHECK: scf.for [[K:%[0-9a-z]+]] =
        // CHECK: scf.for [[M:%[0-9a-z]+]] =
        // CHECK: tile.crd2idx ([[M]], [[K]]) in "(2,4):(64,512)"
        // CHECK: tile.view %s at {{.*}} : !tile.tensor<f16, gmem, align<16>, "(8,1):(1,0)">
        // CHECK: tile.crd2idx ([[M]], [[K]]) in "(2,4):(16,128)"
        // CHECK: tile.atom_call #tile.copy_atom<"SM80_CP_ASYNC_CACHEALWAYS<uint128_t>", f16>
        // CHECK-SAME: chosen by the tiled copy
        // CHECK: } {unroll}
        // CHECK: } {unroll}
        """,
    )


@pytest.mark.parametrize(
    ("source", "target", "remark"),
    [
        ('align<16>, "8:1"', 'align<16>, "8:1"', "128 bits: 8 elements at a time"),
        (
            'align<8>, "8:1"',
            'align<16>, "8:1"',
            "64 bits: 4 elements at a time; 128 bits rejected: the source's addresses are aligned to 8",
        ),
        (
            'align<16>, "8:1"',
            'align<2>, "8:1"',
            "16 bits: 1 element at a time; 128 bits rejected: the destination's addresses are aligned to 2",
        ),
        (
            'align<16>, "8:2"',
            'align<16>, "8:1"',
            "16 bits: 1 element at a time; 128 bits rejected: 1 element is adjacent",
        ),
        (
            'align<16>, "(4,2):(1,8)"',
            'align<16>, "(4,2):(1,4)"',
            "64 bits: 4 elements at a time; 128 bits rejected: 4 elements are adjacent",
        ),
        ('align<16>, "(8,2):(1,12)"', 'align<16>, "(8,2):(1,8)"', "64 bits: 4 elements at a time; 128 bits rejected"),
        ('align<16>, "(4,4):(4,1)"', 'align<16>, "(4,4):(4,1)"', "128 bits: 8 elements at a time"),
        (
            'align<16>, "S<1,2,1> o 0 o 8:1"',
            'align<16>, "8:1"',
            "64 bits: 4 elements at a time; 128 bits rejected: the swizzle keeps 4",
        ),
        ('align<16>, "6:1"', 'align<16>, "6:1"', "32 bits: 2 elements at a time"),
    ],
)
def test_expand_copies_says_how_wide_and_why(source: str, target: str, remark: str) -> None:
    body = (
        f"%s = tile.alloc : !tile.tensor<f16, smem, {source}>\n%d = tile.alloc : !tile.tensor<f16, smem, {target}>\n"
        "tile.copy %s, %d"
    )
    check_pass("expand-copies", kernel(body), f"// CHECK: tile.atom_call\n// CHECK-SAME: {remark}")


def test_lower_tensors_computes_addresses_in_32_bits() -> None:
    check_pass(
        "lower-tensors,cse",
        kernel("%t = gpu.thread_id x\n%v = tile.load %A(%t, 3)\ntile.store %v, %B(0, %t)", TILE_ARGS),
        """
        // CHECK: ptx.entry @k(%A: !ptx.ptr<global> align 16, %B: !ptx.ptr<global> align 16) threads(32) {
        // CHECK: [[T:%[0-9a-z]+]] = arith.index_cast %t : index to i32
        // CHECK: arith.muli [[T]]
        // CHECK: [[P:%[0-9a-z]+]] = ptx.ptr_add %A, {{.*}} : !ptx.ptr<global>, i32 -> !ptx.ptr<global>
        // CHECK: %v = ptx.ld [[P]] align 2 : !ptx.ptr<global> -> f16
        // CHECK: ptx.st %v, {{.*}} align 2 : f16, !ptx.ptr<global>
        // CHECK: ptx.ret
        """,
    )


def test_lower_tensors_computes_large_addresses_in_64_bits() -> None:
    big = '!tile.tensor<f32, gmem, align<16>, "(65536,65536):(65536,1)">'
    check_pass(
        "lower-tensors,cse",
        kernel(
            "%t = gpu.thread_id x\n%b = gpu.block_id x\n%v = tile.load %A(%b, 3)\ntile.store %v, %A(%t, 0)",
            f"%A: {big}",
        ),
        """
        // CHECK: arith.index_cast %b : index to i64
        // CHECK: ptx.ptr_add %A, {{.*}} {remark = "64-bit offset: {{.*}} : !ptx.ptr<global>, i64 -> !ptx.ptr<global>
        // CHECK: ptx.ptr_add %A, {{.*}} : !ptx.ptr<global>, i32 -> !ptx.ptr<global>
        """,
    )


def test_lower_tensors_names_the_integers_of_a_layout_in_their_order() -> None:
    check_pass(
        "lower-tensors",
        kernel(
            "%m, %d = tile.get_scalars %A\n%v = tile.load %B(%m, %d)\ntile.store %v, %B(0, 0)",
            '%A: !tile.tensor<f16, gmem, align<16>, "(?,64):(64,?)">, %B: !tile.tensor<f16, gmem, align<16>, '
            '"(4,8):(8,1)">',
        ),
        """
        // CHECK: %m = arith.index_cast %A_1
        // CHECK-NEXT: arith.index_cast %m : index to i32
        // CHECK-NEXT: %d = arith.index_cast %A_2
        // CHECK-NEXT: arith.index_cast %d : index to i32
        // CHECK: ptx.ptr_add %B, {{.*}} within (%m < 4, %d < 8 : index)
        """,
    )


def test_lower_tensors_swizzles_the_offset() -> None:
    body = (
        '%s = tile.alloc : !tile.tensor<f16, smem, align<128>, "S<3,3,3> o 0 o (8,64):(64,1)">\n'
        "%t = gpu.thread_id x\n%v = tile.load %A(%t, 0)\ntile.store %v, %s(0, %t)"
    )
    check_pass(
        "lower-tensors,cse",
        kernel(body, TILE_ARGS),
        """
        // CHECK: %s = ptx.smem.alloc 1024 align 128
        // CHECK: arith.andi
        // CHECK: arith.shrui
        // CHECK: arith.xori
        // CHECK: ptx.ptr_add %s
        """,
    )


def test_lower_tensors_refuses_loops_that_carry_tensors() -> None:
    body = (
        "%c = arith.constant 1 : index\n"
        f"%r = scf.for %i = %c to %c step %c iter_args(%a = %A) -> ({G}) {{\nscf.yield %a : {G}\n}}"
    )
    with pytest.raises(ProgramError) as caught:
        apply(kernel(body, TILE_ARGS), "lower-tensors")
    assert caught.value.code == "E2004"
    assert "carry the coordinate instead" in caught.value.hint


def test_print_tensor_is_bounded() -> None:
    with pytest.raises(ProgramError) as caught:
        apply(kernel('tile.print_tensor "A" %A', TILE_ARGS), "lower-tensors")
    assert caught.value.code == "E2005"


NARROW_LOOP = """\
%c0 = arith.constant 0 : index
%c1 = arith.constant 1 : index
%n = arith.constant 4 : index
%four = arith.constant 4 : index
scf.for %i = %c0 to %n step %c1 {{
%o = arith.muli %i, %four : index
%p = ptx.ptr_add %A, %o : !ptx.ptr<global>, index -> !ptx.ptr<global>
%v = ptx.ld %p align {align} : !ptx.ptr<global> -> {type}
{more}
}}"""


def test_unroll_loops_unrolls_narrow_accesses() -> None:
    text = NARROW_LOOP.format(align=4, type="f32", more="")
    module = apply(entry(text, PTX_ARGS), "unroll-loops")
    assert not any(isinstance(op, scf.ForOp) for op in module.walk())
    assert printed(module).count("ptx.ld") == 4


@pytest.mark.parametrize(
    ("align", "type", "more", "passes"),
    [
        (16, "vector<4xf32>", "", "unroll-loops"),  # as wide as can be
        (4, "f32", "ptx.bar.sync 0", "unroll-loops"),
        (4, "f32", "scf.for %j = %c0 to %n step %c1 {\n}", "unroll-loops"),
        (4, "f32", "", "unroll-loops{max_ops=8}"),
    ],
)
def test_unroll_loops_leaves_others(align: int, type: str, more: str, passes: str) -> None:
    text = entry(NARROW_LOOP.format(align=align, type=type, more=more), PTX_ARGS)
    assert printed(apply(text, passes)) == printed(apply(text, ""))


def test_unroll_loops_carries_values() -> None:
    body = """
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %n = arith.constant 2 : index
    %z = arith.constant 0.0 : f32
    %s = scf.for %i = %c0 to %n step %c1 iter_args(%a = %z) -> (f32) {
      %v = ptx.ld %A align 4 : !ptx.ptr<global> -> f32
      %b = arith.addf %a, %v : f32
      scf.yield %b : f32
    }
    ptx.st %s, %B align 4 : f32, !ptx.ptr<global>"""
    check_pass(
        "unroll-loops",
        entry(body, PTX_ARGS),
        """
        // CHECK: [[V:%[0-9a-z_]+]] = ptx.ld %A
        // CHECK: [[A:%[0-9a-z_]+]] = arith.addf %z, [[V]]
        // CHECK: [[W:%[0-9a-z_]+]] = ptx.ld %A
        // CHECK: [[S:%[0-9a-z_]+]] = arith.addf [[A]], [[W]]
        // CHECK: ptx.st [[S]], %B
        """,
    )


@pytest.mark.parametrize(
    ("atom", "operands", "patterns"),
    [
        ("UniversalCopy<uint8_t>", "%A, %l", "ptx.ld %A align 1 : !ptx.ptr<global> -> i8"),
        ("UniversalCopy<uint16_t>", "%s, %A", "ptx.ld %s align 2 : !ptx.ptr<shared> -> i16"),
        ("UniversalCopy<uint32_t>", "%A, %l", "ptx.ld %A align 4 : !ptx.ptr<global> -> i32"),
        ("UniversalCopy<uint64_t>", "%s, %A", "ptx.ld %s align 8 : !ptx.ptr<shared> -> i64"),
        ("UniversalCopy<uint64_t>", "%A, %l", "ptx.ld %A align 8 : !ptx.ptr<global> -> vector<2xi32>"),
        ("UniversalCopy<uint128_t>", "%A, %l", "ptx.ld %A align 16 : !ptx.ptr<global> -> vector<4xi32>"),
        ("SM80_CP_ASYNC_CACHEALWAYS<uint32_t>", "%A, %s", 'ptx.cp.async "ca" 4 %s, %A'),
        ("SM80_CP_ASYNC_CACHEALWAYS<uint128_t>", "%A, %s", 'ptx.cp.async "ca" 16 %s, %A'),
        ("SM80_CP_ASYNC_CACHEGLOBAL<uint128_t>", "%A, %s", 'ptx.cp.async "cg" 16 %s, %A'),
        ("SM75_U32x1_LDSM_N", "%s, %l", "ptx.ldmatrix x 1 %s : vector<1xi32>"),
        ("SM75_U32x2_LDSM_N", "%s, %l", "ptx.ldmatrix x 2 %s : vector<2xi32>"),
        ("SM75_U32x4_LDSM_N", "%s, %l", "ptx.ldmatrix x 4 %s : vector<4xi32>"),
        ("SM75_U16x2_LDSM_T", "%s, %l", "ptx.ldmatrix x 1 trans %s : vector<1xi32>"),
        ("SM75_U16x8_LDSM_T", "%s, %l", "ptx.ldmatrix x 4 trans %s : vector<4xi32>"),
    ],
)
def test_expand_atoms(atom: str, operands: str, patterns: str) -> None:
    body = (
        "%s = ptx.smem.alloc 1024 align 128\n%l = ptx.local.alloc 16 align 16\n"
        f'tile.atom_call #tile.copy_atom<"{atom}", i8> {operands}'
    )
    check_pass("expand-atoms", entry(body, PTX_ARGS), f"// CHECK{{LITERAL}}: {patterns}\n// CHECK-NOT: tile.atom_call")


def test_a_fragment_of_wide_elements_is_moved_by_these() -> None:
    body = '%l = ptx.local.alloc 16 align 16\ntile.atom_call #tile.copy_atom<"UniversalCopy<uint128_t>", f64> %l, %A'
    check_pass(
        "expand-atoms",
        entry(body, PTX_ARGS),
        "// CHECK{LITERAL}: ptx.ld %l align 16 : !ptx.ptr<local> -> vector<2xi64>",
    )


def test_a_matrix_of_registers_is_transposed() -> None:
    body = "%l = ptx.local.alloc 16 align 16\n"
    body += 'tile.atom_call #tile.copy_atom<"SM75_U32x1_MOVM_T", f16> %l, %l'
    check_pass("expand-atoms", entry(body), "// CHECK: [[M:%[0-9a-z]+]] = ptx.movmatrix\n// CHECK: ptx.st [[M]], %l")


@pytest.mark.parametrize(("element", "bytes"), [("i8", "%n"), ("i16", 2), ("i64", 8)])
def test_a_copy_with_zeros_counts_bytes(element: str, bytes: str | int) -> None:
    body = "%n = arith.constant 1 : i32\n%s = ptx.smem.alloc 16 align 16\n"
    body += f'tile.atom_call #tile.copy_atom<"SM80_CP_ASYNC_CACHEALWAYS_ZFILL<uint128_t>", {element}> %A, %s count %n'
    factor = f"[[B:%[0-9a-z]+]] = arith.constant {bytes} : i32\n// CHECK: arith.muli %n, [[B]]"
    check = "ptx.cp.async {{.*}} %n" if bytes == "%n" else factor
    check_pass("expand-atoms", entry(body, PTX_ARGS), f"// CHECK: {check}")


def test_allocate_smem_aligns_each() -> None:
    body = "%a = ptx.smem.alloc 100 align 4\n%b = ptx.smem.alloc 8 align 128\n%c = ptx.smem.alloc 1 align 1"
    check_pass(
        "allocate-smem",
        entry(body),
        """
        // CHECK: threads(32) shared(137) {
        // CHECK: %a = ptx.smem.addr 0
        // CHECK: %b = ptx.smem.addr 128
        // CHECK: %c = ptx.smem.addr 136
        """,
    )


@pytest.mark.parametrize(
    ("register", "loop", "second"), [("ctaid.x", False, 128), ("tid.x", False, 256), ("ctaid.x", True, 256)]
)
def test_branches_of_a_block_share_memory(register: str, loop: bool, second: int) -> None:
    body = f"""
    %z = arith.constant 0 : i32
    %o = arith.constant 1 : i32
    %a = ptx.smem.alloc 128 align 128
    %r = ptx.sreg "{register}"
    {"scf.for %i = %z to %o step %o : i32 {" if loop else ""}
    %c = arith.cmpi eq, %r, %o : i32
    scf.if %c {{
      %b = ptx.smem.alloc 128 align 128
    }} else {{
      %d = ptx.smem.alloc 256 align 128
    }}
    {"}" if loop else ""}"""
    check_pass(
        "allocate-smem",
        entry(body),
        f"""
        // CHECK: shared({second + 256}) {{
        // CHECK: %a = ptx.smem.addr 0
        // CHECK: %b = ptx.smem.addr 128
        // CHECK: %d = ptx.smem.addr {second}
        """,
    )


def test_convert_index_uses_registers_and_32_bits() -> None:
    body = """
    %t = gpu.thread_id x
    %b = gpu.block_id y
    %d = gpu.block_dim x
    %o = arith.muli %b, %d : index
    %i = arith.addi %o, %t : index
    %p = ptx.ptr_add %A, %i : !ptx.ptr<global>, index -> !ptx.ptr<global>"""
    check_pass(
        "convert-index",
        entry(body, PTX_ARGS),
        """
        // CHECK: %t = ptx.sreg "tid.x"
        // CHECK: %b = ptx.sreg "ctaid.y"
        // CHECK: %d = ptx.sreg "ntid.x"
        // CHECK: %o = arith.muli %b, %d : i32
        // CHECK: %i = arith.addi %o, %t : i32
        // CHECK: ptx.ptr_add %A, %i : !ptx.ptr<global>, i32
        // CHECK-NOT: index
        """,
    )


def test_convert_index_keeps_64_bits_where_32_may_not_do() -> None:
    body = """
    %b = gpu.block_id x
    %c = arith.constant 4 : index
    %o = arith.muli %b, %c : index
    %p = ptx.ptr_add %A, %o : !ptx.ptr<global>, index -> !ptx.ptr<global>"""
    check_pass(
        "convert-index",
        entry(body, PTX_ARGS),
        """
        // CHECK: [[W:%[0-9a-z]+]] = arith.extsi %b : i32 to i64
        // CHECK: %o = arith.muli [[W]], {{.*}} : i64
        // CHECK: ptx.ptr_add %A, %o : !ptx.ptr<global>, i64
        """,
    )


def test_strength_reduce() -> None:
    body = """
    %t = ptx.sreg "tid.x"
    %c8 = arith.constant 8 : i32
    %c1 = arith.constant 1 : i32
    %m = arith.muli %t, %c8 : i32
    %d = arith.divui %m, %c8 : i32
    %r = arith.remui %d, %c8 : i32
    %n = arith.muli %r, %c1 : i32
    %k = arith.muli %c8, %c8 : i32
    %s = arith.addi %n, %k : i32
    %p = ptx.ptr_add %A, %s : !ptx.ptr<global>, i32 -> !ptx.ptr<global>
    %v = ptx.ld %p align 4 : !ptx.ptr<global> -> f32"""
    check_pass(
        "strength-reduce",
        entry(body, PTX_ARGS),
        """
        // CHECK: arith.shli %t
        // CHECK: [[QUOTIENT:%[0-9a-z]+]] = arith.shrui
        // CHECK: [[MASK:%[0-9a-z]+]] = arith.constant 7 : i32
        // CHECK: arith.andi [[QUOTIENT]], [[MASK]]
        // CHECK: arith.constant 64 : i32
        // CHECK: arith.addi
        // CHECK-NOT: arith.muli
        // CHECK-NOT: arith.divui
        // CHECK-NOT: arith.remui
        """,
    )


def test_addresses_of_a_tiled_copy_are_shifts_masks_and_adds() -> None:
    text = kernel(
        '%t = gpu.thread_id x\n%m = gpu.block_id x\n%g = tile.local_tile %A, "(16,32)", (%m, 0)\n'
        '%h = tile.local_tile %B, "(16,32)", (%m, 0)\n'
        '%c = tile.tiled_copy #tile.copy_atom<"UniversalCopy<uint128_t>", f16> thr "(2,16):(1,2)" val "(8,1):(1,1)"\n'
        "%s = tile.partition_S %c, %g, %t\n%d = tile.partition_D %c, %h, %t\ntile.copy %c, %s, %d",
        TILE_ARGS,
    )
    left = {op.name for op in lowered(text, "instr").walk() if op.name.startswith("arith.")}
    assert left <= {"arith.constant", "arith.shli", "arith.shrui", "arith.andi", "arith.addi", "arith.ori"}


@pytest.mark.parametrize("name", list(OUR_PASSES))
def test_a_pass_says_what_it_does(name: str) -> None:
    applied = OUR_PASSES[name]()
    text = applied.__doc__ or ""
    assert applied.name == name
    assert text.strip()
    if not name.startswith("check-"):
        assert "Before:" in text
        assert "After:" in text
