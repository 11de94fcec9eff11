# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""MMA atoms against formulas written from the PTX ISA's fragment figures, and their self-checks."""

from dataclasses import replace

import pytest
from tilefold.base.errors import Code, LayoutError
from tilefold.base.target import targets
from tilefold.layout.algebra.core import Layout
from tilefold.layout.atoms.contract import Named
from tilefold.layout.atoms.instructions import Dp4a, Fma
from tilefold.layout.atoms.mma_atom import MmaAtom
from tilefold.layout.atoms.mma_table import MMA_ATOMS, mma_atom
from tilefold.layout.atoms.ptx_text import mma_mnemonic

WARP_WIDE = [atom for atom in map(mma_atom, MMA_ATOMS) if atom.threads == 32]
WARPGROUP = [
    "SM90_64x8x16_F16F16F16_RS<Major::K,Major::K>",
    "SM90_64x128x16_F32F16F16_SS<Major::MN,Major::K>",
    "SM90_64x256x16_F32BF16BF16_RS<Major::K,Major::MN>",
    "SM90_64x64x8_F32TF32TF32_RS_TN",
    "SM90_64x96x32_F32E4M3E5M2_RS_TN",
    "SM90_64x96x32_S32S8U8_SS_TN_SATURATE",
]


def place(row: int, column: int, rows: int) -> int:
    return row + rows * column


def row_and_column(lane: int, value: int, bits: int, rows: int) -> tuple[int, int]:
    """Where PTX puts a value of A (or, of 8 rows, of B) in a lane: row groupID, or groupID + 8 for every
    second register, and columns counted from threadID_in_group times the elements of a register, in groups of
    four registers.
    """
    width = max(32 // bits, 1)
    group, thread = lane // 4, lane % 4
    register, element = divmod(value, width)
    if rows == 16:
        return group + 8 * (register % 2), 4 * width * (register // 2) + width * thread + element
    return group, 4 * width * register + width * thread + element


def accumulator_row_and_column(lane: int, value: int) -> tuple[int, int]:
    """c0, c1: row groupID; c2, c3: row groupID + 8; columns 2 threadID_in_group and the next; 8 columns on
    for each 4.
    """
    return lane // 4 + 8 * (value // 2 % 2), 8 * (value // 4) + 2 * (lane % 4) + value % 2


@pytest.mark.parametrize("atom", WARP_WIDE, ids=str)
def test_warp_wide_fragments_follow_the_figures(atom: MmaAtom) -> None:
    m, n, k = atom.shape
    _, bits_a, bits_b, _ = atom.bits
    for lane in range(32):
        for value in range(m * k // 32):
            row, column = row_and_column(lane, value, bits_a, m)
            assert atom.layout_a(lane, value) == place(row, column, m)
        for value in range(n * k // 32):
            row, column = row_and_column(lane, value, bits_b, n)
            assert atom.layout_b(lane, value) == place(row, column, n)
        for value in range(m * n // 32):
            assert atom.layout_c(lane, value) == place(*accumulator_row_and_column(lane, value), m)


@pytest.mark.parametrize("name", WARPGROUP)
def test_warpgroup_fragments_are_four_warps_of_sixteen_rows(name: str) -> None:
    atom = mma_atom(name)
    m, n, k = atom.shape
    assert (atom.threads, atom.targets, atom.operand("B").named) == (128, targets(90, 80, "a"), Named.DESCRIPTOR)
    for thread in range(128):
        warp, lane = divmod(thread, 32)
        for value in range(m * n // 128):
            row, column = accumulator_row_and_column(lane, value)
            assert atom.layout_c(thread, value) == place(16 * warp + row, column, m)
        if atom.operand("A").named is Named.VALUE:
            for value in range(m * k // 128):
                row, column = row_and_column(lane, value, atom.bits[1], 16)
                assert atom.layout_a(thread, value) == place(16 * warp + row, column, m)
        else:
            assert [atom.layout_a(thread, v) for v in range(m * k)] == list(range(m * k))
        assert atom.layout_b(thread, n * k - 1) == n * k - 1


@pytest.mark.parametrize("c", ["F16", "F32"])
@pytest.mark.parametrize("majors", ["TN", "NT", "NN", "TT"])
def test_quad_pair_fragments_follow_the_figures(c: str, majors: str) -> None:
    """mma.m8n8k4: by rows, lane i of a quad (+ 4 in the upper lanes) holds row i; by columns, column i % 4."""
    atom = mma_atom(f"SM70_8x8x4_{c}F16F16{c}_{majors}")
    assert [atom.thr_id(t) for t in range(8)] == [0, 1, 2, 3, 16, 17, 18, 19]
    for t in range(8):
        for v in range(4):
            by_row, by_column = place(t, v, 8), place(v + 4 * (t // 4), t % 4, 8)
            assert atom.layout_a(t, v) == (by_row if majors[0] == "T" else by_column)
            assert atom.layout_b(t, v) == (by_row if majors[1] == "N" else by_column)
        for v in range(8):
            by_row = place(t, v, 8)
            in_f32 = place((t & 1) + (v & 2) + 4 * (t // 4), (v & 4) + (t & 2) + (v & 1), 8)
            assert atom.layout_c(t, v) == (in_f32 if c == "F32" else by_row)


def moye_names() -> list[str]:
    """The names of MoYe.jl's `mma_ops_list` that CuTe has: shape, types of D, A, B and C, majors, saturation or
    operation. MoYe.jl also has 8x8x4_F32F16F16F16, whose D lies differently in registers from its C.
    """
    eight = [(a, b) for a in ("S8", "U8") for b in ("S8", "U8")]
    return [
        "8x8x4_F64F64F64F64_TN",
        *[f"16x8x{k}_F32TF32TF32F32_TN" for k in (4, 8)],
        *[f"16x8x{k}_F32BF16BF16F32_TN" for k in (8, 16)],
        *[f"8x8x4_{c}F16F16{c}_{majors}" for c in ("F16", "F32") for majors in ("TT", "NT", "TN", "NN")],
        *[f"16x8x{k}_{d}F16F16{d}_TN" for k in (8, 16) for d in ("F16", "F32")],
        *[f"{shape}_S32{a}{b}S32_TN{ending}" for shape in ("8x8x16", "16x8x16", "16x8x32") for a, b in eight
          for ending in ("", "_SATURATE")],
        *[f"{shape}_S32B1B1S32_TN_{op}" for shape in ("8x8x128", "16x8x128", "16x8x256")
          for op in ("XORPOPC", "ANDPOPC")],
    ]  # fmt: skip


def test_all_operations_of_moye_are_there() -> None:
    """MoYe.jl names no architecture, and writes B1 where CuTe writes U1."""
    ours = {name.split("_", 1)[1].replace("U1U1", "B1B1") for name in MMA_ATOMS if name.startswith("SM")}
    names = moye_names()
    assert len(set(names)) == 47
    assert set(names) <= ours


@pytest.mark.parametrize("name", MMA_ATOMS)
def test_every_atom_is_complete(name: str) -> None:
    atom = mma_atom(name)
    assert atom.name == name
    assert atom.source.startswith("PTX ISA")
    text = mma_mnemonic(atom)
    assert isinstance(atom.instruction, Fma | Dp4a) or all(f".{t}" in text for t in atom.types)


@pytest.mark.parametrize(
    ("name", "types"),
    [
        ("UniversalFMA<float,half_t>", ("f32", "f16", "f16", "f32")),
        ("UniversalFMA<float,half_t,bfloat16_t>", ("f32", "f16", "bf16", "f32")),
        ("UniversalFMA<double, float, float, half_t>", ("f64", "f32", "f32", "f16")),
        ("UniversalFMA<int,uint8_t>", ("s32", "u8", "u8", "s32")),
        ("UniversalFMA<unsigned>", ("u32", "u32", "u32", "u32")),
    ],
)
def test_types_that_are_left_out_follow_the_first(name: str, types: tuple[str, ...]) -> None:
    """As the template arguments of CuTe's UniversalFMA: A is D, B is A, C is D."""
    assert mma_atom(name).types == types


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("UniversalFMA<half_t,float>", "f32 does not widen to f16"),
        ("UniversalFMA<bfloat16_t,half_t>", "f16 does not widen to bf16"),
        ("UniversalFMA<float,int>", "s32 does not widen to f32"),
        ("UniversalFMA<int16_t,int8_t,int8_t,int32_t>", "s32 does not widen to s16"),
        ("UniversalFMA<float_e4m3_t>", "8-bit floats have no arithmetic"),
        ("UniversalFMA<float,quux>", "no type 'quux'"),
        ("UniversalFMA<float,>", "no type ''"),
        ("UniversalFMA<float,float,float,float,float>", "has 5 types"),
        ("UniversalFMA<>", "has no types"),
        ("UniversalFMA<float", "has no types"),
        ("SM61_DP2A", "use SM61_DP4A"),
        ("SM80_8x8x4_C64C64C64C64_TN", "no complex elements; multiply views of their real and imaginary parts"),
        ("SM80_8x8x4_GC64C64C64GC64_TN", "no complex elements"),
        ("SM90_16x8x8_C64C64C64C64_TN", "no complex elements"),
        ("UniversalFMA<complex<float>>", "multiply views of real and imaginary parts"),
        ("SM70_8x8x4_F32F16F16F16_NT", "use SM70_8x8x4_F32F16F16F32_NT"),
        ("SM80_16x8x16_F32F16F16F32_NT", "similar names: SM80_16x8x16_F32F16F16F32_TN"),
    ],
)
def test_atoms_that_do_not_exist_are_refused_with_a_hint(name: str, said: str) -> None:
    with pytest.raises(LayoutError) as caught:
        mma_atom(name)
    assert caught.value.code == Code.ATOM_UNKNOWN.id
    assert said in f"{caught.value}"


@pytest.mark.parametrize(
    "name",
    [
        "SM80_16x8x16_F32F32F32F32_TN",
        "SM90_64x12x16_F32F16F16_SS<Major::K,Major::K>",
        "SM90_64x64x16_F32F16F16_SS_TN",
        "SM90_64x64x32_F32E4M3E4M3_SS<Major::MN,Major::K>",
        "SM90_64x64x16_F32F16F16_RS<Major::MN,Major::K>",
        "SM90_64x40x32_S32S8S8_SS_TN",
        "SM90_64x64x8_F32F16F16_SS<Major::K,Major::K>",
        "",
    ],
)
def test_instructions_that_do_not_exist_are_refused(name: str) -> None:
    with pytest.raises(LayoutError) as caught:
        mma_atom(name)
    assert caught.value.code in (Code.ATOM_UNKNOWN.id, Code.ATOM_OPERAND.id)


def test_atoms_check_themselves() -> None:
    atom = mma_atom("SM80_16x8x8_F32F16F16F32_TN")
    for broken in (Layout((16, 8), (1, 16)), Layout((32, 4), (1, 16)), Layout((32, 2), (1, 32))):
        with pytest.raises(LayoutError) as caught:
            replace(atom, contract=atom.contract.with_operand(replace(atom.operand("A"), layout=broken)))
        assert caught.value.code == Code.ATOM_INVALID.id
    with pytest.raises(LayoutError):
        replace(atom, contract=atom.contract.with_operand(replace(atom.operand("A"), element="f17")))
