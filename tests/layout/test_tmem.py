# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensor memory: the copies that reach it against a second formula of their cells, matrices and operands in it, and the
errors of each."""

from itertools import product

import pytest
from tilefold.base.errors import Code, LayoutError
from tilefold.base.spaces import LANE_SHIFT
from tilefold.layout.algebra.core import Layout, cosize, make_layout
from tilefold.layout.atoms.copy_names import copy_atom
from tilefold.layout.atoms.mma_table import mma_atom
from tilefold.layout.atoms.tcgen05_shapes import ACCESS_SHAPES, COPY_SHAPES
from tilefold.layout.atoms.tmem_copy import CP_SHAPES, SHAPES, cells_of, tmem_cp, tmem_load, tmem_store
from tilefold.layout.atoms.umma_descriptors import MmaKind, sizes
from tilefold.layout.atoms.umma_encoding import instruction_descriptor_of
from tilefold.layout.atoms.umma_smem import make_umma_descriptor, select_umma_mode, swizzling_of, umma_smem_atom
from tilefold.layout.tiling.tiled_mma import make_tiled_mma
from tilefold.layout.tiling.tmem_copies import make_tmem_copy
from tilefold.layout.tmem.cells import add_elements, count_columns
from tilefold.layout.tmem.fragments import place_matrix, place_stationary
from tilefold.layout.tmem.scales import place_scales, scales_in_smem, tile_scales

FP4 = "float_e2m1_t,float_e2m1_t"
F16 = "SM100_MMA_F16BF16_SS<half_t,half_t,float,128,64,Major::K,Major::K>"


def _cell(bit: int) -> tuple[int, int]:
    """The lane and the column of a bit of tensor memory."""
    return bit // 32 >> LANE_SHIFT, bit // 32 & ((1 << LANE_SHIFT) - 1)


@pytest.mark.parametrize(("shape", "num"), [(s, n) for s, n in product(SHAPES, (1, 2, 8)) if s != "16x32bx2"])
def test_registers_are_the_cells_of_the_shape(shape: str, num: int) -> None:
    atom, form = tmem_load(shape, num), ACCESS_SHAPES[shape]
    cells = cells_of(atom)
    for lane, register in product(range(32), range(form.registers * num)):
        assert _cell(cells(atom.dst_bits((lane, 32 * register)))) == form.cell(lane, register)


@pytest.mark.parametrize("num", [1, 4])
def test_halves_of_a_split_shape_are_beside_each_other(num: int) -> None:
    atom = tmem_load("16x32bx2", num)
    for lane, register in product(range(32), range(num)):
        expected = (lane % 16, register + num * (lane // 16))
        assert _cell(cells_of(atom)(atom.dst_bits((lane, 32 * register)))) == expected


@pytest.mark.parametrize("shape", SHAPES)
def test_packing_takes_the_lower_halves_of_two_cells(shape: str) -> None:
    plain, packed = tmem_load(shape, 2), tmem_load(shape, 2, packs=True)
    bits = {cells_of(packed)(i) for i in range(0, cosize(packed.ref_bits), 16)}
    assert all(bit % 32 == 0 for bit in bits)
    assert len({_cell(bit) for bit in bits}) == 2 * cosize(plain.ref_bits) // 32


def test_a_store_is_its_load_backwards() -> None:
    load, store = tmem_load("16x256b", 4), tmem_store("16x256b", 4)
    assert (store.src_bits, store.dst_bits, store.ref_bits) == (load.dst_bits, load.src_bits, load.ref_bits)


@pytest.mark.parametrize("word", [word for word in CP_SHAPES if word != "4dp256bit"])
def test_copies_from_shared_memory_write_the_rows_of_their_shape(word: str) -> None:
    atom, (name, multicast, _) = tmem_cp(word, 1), CP_SHAPES[word]
    form = COPY_SHAPES[f"{name}.{multicast}" if multicast else name]
    lanes = {lane for row in range(form.rows) for lane in form.lanes(row)}
    cells = cells_of(atom)
    assert {_cell(cells(bit))[0] for bit in range(0, cells.size)} == lanes
    assert atom.src_bits.size == form.rows * form.columns * 32 * form.copies


@pytest.mark.parametrize(
    "name", ["SM100_TMEM_LOAD_32dp32b256x", "SM100_TMEM_STORE_16dp256b64x", "SM100_UTCCP_1dp_1cta"]
)
def test_unknown_copies(name: str) -> None:
    with pytest.raises(LayoutError) as error:
        copy_atom(name)
    assert error.value.code is Code.ATOM_UNKNOWN


def test_repetitions_that_do_not_exist() -> None:
    with pytest.raises(LayoutError, match="x64") as error:
        tmem_load("16x256b", 64)
    assert error.value.code is Code.ATOM_OPERAND


@pytest.mark.parametrize(("blocks", "rows"), [(1, 64), (1, 128), (2, 32), (2, 64), (2, 128)])
def test_accumulators_have_a_cell_for_each_element(blocks: int, rows: int) -> None:
    layout = place_matrix(((rows, 64), 2, 1), blocks, 32)
    cells = {layout(i) for i in range(layout.size)}
    assert len(cells) == layout.size
    assert all(cell >> LANE_SHIFT < 128 for cell in cells)
    assert count_columns(layout, 32) == max(cell & 0xFFFF for cell in cells) + 1


def test_tensor_memory_has_an_end() -> None:
    with pytest.raises(LayoutError, match="512 columns"):
        place_matrix(((128, 256), 1, 3), 1, 32)
    with pytest.raises(LayoutError, match="64 or 128 rows"):
        place_matrix(((32, 64), 1, 1), 1, 32)
    with pytest.raises(LayoutError, match=r"tcgen05\.mma\.ws"):
        place_stationary(((64, 32), 1, 1), 32)


@pytest.mark.parametrize("bits", [8, 16, 32])
def test_addresses_count_elements(bits: int) -> None:
    address = 0x0020_0010
    for index in (1, 2, 3, 32 // bits, 65536 * 32 // bits):
        assert add_elements(add_elements(address, index, bits), -index, bits) == address
    assert add_elements(address, 32 // bits, bits) == address + 1
    assert add_elements(address, 65536 * 32 // bits, bits) == address + (1 << LANE_SHIFT)


@pytest.mark.parametrize(
    "atom", ["SM100_TMEM_LOAD_32dp32b8x", "SM100_TMEM_LOAD_16dp256b2x", "SM100_TMEM_STORE_32dp32b4x"]
)
def test_threads_of_a_copy_have_the_elements_of_their_cells(atom: str) -> None:
    mma = make_tiled_mma(mma_atom(F16))
    tile = place_matrix(mma.partition_shape("C", (128, 64)), 1, 32)[0]
    copy = make_tmem_copy(copy_atom(atom, 32), tile)
    loads = "LOAD" in atom
    seen: set[int] = set()
    for thread in range(0, 128, 7):
        take, other = (copy.partition_S, copy.partition_D) if loads else (copy.partition_D, copy.partition_S)
        cells, start = take(tile, thread)
        own, first = other(make_layout((128, 64)), thread)
        assert start >> LANE_SHIFT == 32 * (thread // 32)
        places = {first + own(i) for i in range(own.size)}
        assert not places & seen
        seen |= places
        reached = {start + cells(i) for i in range(cells.size)}
        assert {tile(place) for place in places} <= reached


def test_copies_need_lanes_of_each_warp() -> None:
    with pytest.raises(LayoutError, match="lanes of each of 4 warps") as error:
        make_tmem_copy(copy_atom("SM100_TMEM_LOAD_32dp32b1x", 32), Layout((64, 32), (65536, 1)))
    assert error.value.code is Code.NOT_IN_DATA_LAYOUT
    with pytest.raises(LayoutError, match="does not reach tensor memory"):
        make_tmem_copy(copy_atom("UniversalCopy<uint32_t>", 32), Layout((128, 32), (65536, 1)))


NAMES = (
    F16,
    "SM100_MMA_F16BF16_2x1SM_SS<bfloat16_t,bfloat16_t,float,256,128,Major::K,Major::MN>",
    "SM100_MMA_TF32_TS<tfloat32_t,tfloat32_t,float,64,64,Major::K,Major::K>",
    "SM100_MMA_S8_SS<int8_t,uint8_t,int32_t,128,128,Major::K,Major::K,Saturate::True>",
    "SM100_MMA_F8F6F4_SS<float_e4m3_t,float_e2m1_t,half_t,128,128,Major::K,Major::K,ScaleIn::Neg,ScaleIn::One>",
    "SM100_MMA_MXF8F6F4_SS<float_e4m3_t,float_e5m2_t,float,float_ue8m0_t,128,64,Major::K,Major::K>",
    "SM100_MMA_MXF4_2x1SM_SS<float_e2m1_t,float_e2m1_t,float,float_ue4m3_t,256,64,16,Major::K,Major::K>",
    "SM103::SM103_MXF4_ULTRA_SS_VS<float_e2m1_t,float_e2m1_t,float,float_ue4m3_t,128,64,16,Major::K,Major::K>",
    "SM100_MMA_F16BF16_WS_SS<half_t,half_t,float,32,128,Major::K,Major::K>",
    "SM100_MMA_F16BF16_SS_SPARSE<half_t,half_t,float,128,128,Major::K,Major::K>",
)


@pytest.mark.parametrize("name", NAMES)
def test_names_tell_the_facts(name: str) -> None:
    atom = mma_atom(name)
    assert atom.name == name
    assert mma_atom(name.replace("Major", "UMMA::Major")) is atom
    word = instruction_descriptor_of(atom)
    stationary = "_WS_" in name
    assert not list(word.problems(atom.threads, ws=stationary, sparse="_SPARSE" in name))
    assert (word.m, word.n) == atom.shape[:2]


@pytest.mark.parametrize("kind", ["f16", "tf32", "i8"])
def test_shapes_are_among_those_of_ptx(kind: str) -> None:
    family, types = {
        "f16": ("F16BF16", "half_t,half_t,float"),
        "tf32": ("TF32", "tfloat32_t,tfloat32_t,float"),
        "i8": ("S8", "int8_t,int8_t,int32_t"),
    }[kind]
    for blocks, m, n in product((1, 2), (64, 128, 256), range(8, 265, 8)):
        name = f"SM100_MMA_{family}{'_2x1SM' if blocks == 2 else ''}_SS<{types},{m},{n},Major::K,Major::K>"
        try:
            mma_atom(name)
        except LayoutError:
            continue
        assert n in sizes(MmaKind(kind), blocks).get(m, ())


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("SM100_MMA_F16BF16_SS<half_t,half_t,float,128,64>", Code.ATOM_UNKNOWN),
        ("SM100_MMA_F16BF16_SS<half_t,half_t,float,128,x,Major::K,Major::K>", Code.ATOM_UNKNOWN),
        ("SM100_MMA_F16BF16_SS<no_t,half_t,float,128,64,Major::K,Major::K>", Code.ATOM_UNKNOWN),
        ("SM100_MMA_F16BF16_SS<half_t,half_t,float,128,64,Major::K,Major::K,Yes>", Code.ATOM_UNKNOWN),
        ("SM100_MMA_NONE_SS<half_t,half_t,float,128,64,Major::K,Major::K>", Code.ATOM_UNKNOWN),
        ("SM100_MMA_F16BF16_SS<half_t,bfloat16_t,float,128,64,Major::K,Major::K>", Code.ATOM_OPERAND),
        ("SM100_MMA_F16BF16_TS<half_t,half_t,float,128,64,Major::MN,Major::K>", Code.ATOM_OPERAND),
        ("SM100_MMA_F16BF16_SS<half_t,half_t,float,128,64,Major::K,Major::K,Saturate::True>", Code.ATOM_OPERAND),
        (f"SM100_MMA_MXF4_SS<{FP4},float,float_ue4m3_t,128,64,32,Major::K,Major::K>", Code.ATOM_OPERAND),
    ],
)  # fmt: skip
def test_atoms_that_do_not_exist(name: str, code: Code) -> None:
    with pytest.raises(LayoutError) as error:
        mma_atom(name)
    assert error.value.code is code


def test_operands_are_whole_tiles() -> None:
    with pytest.raises(LayoutError, match="not a multiple of the tile's 128") as error:
        make_tiled_mma(mma_atom(F16)).partition_shape("A", (192, 64))
    assert error.value.code is Code.TILE_RANK


def test_shared_memory_that_no_descriptor_describes() -> None:
    plain = umma_smem_atom("K", "SW128", 16)
    with pytest.raises(LayoutError, match="no descriptor") as error:
        make_umma_descriptor(Layout((8, 16), (16, 1)), swizzling_of(plain, 16), 16, "K", 0)
    assert error.value.code is Code.NOT_A_WGMMA_OPERAND
    with pytest.raises(LayoutError, match="MN-major only"):
        umma_smem_atom("K", "SW128_32B", 32)
    with pytest.raises(LayoutError, match="6-bit"):
        umma_smem_atom("K", "SW128", 6)
    with pytest.raises(LayoutError, match="multiples of 8"):
        select_umma_mode("K", 16, 128, 20)


def test_scale_factors_lie_in_blocks() -> None:
    layout = tile_scales(32, (256, 512))
    assert [layout(c) for c in ((0, 0), (1, 31), (32, 0), (0, 32), (128, 0))] == [0, 16, 4, 1, 2048]
    assert tile_scales(32, (64, 128)) == tile_scales(32, (128, 128))  # the last block is whole
    part = scales_in_smem(32, 32, 192, 128)
    assert cosize(part) == 2 * 512
    cells = place_scales(part.shape)
    assert {add_elements(0, cells(((r, 0), 0, 0)), 8) >> LANE_SHIFT for r in range(part[0][0].size)} == set(range(32))
    with pytest.raises(LayoutError, match="whole blocks"):
        scales_in_smem(32, 32, 128, 96)
    with pytest.raises(LayoutError, match="a matrix"):
        tile_scales(32, 128)
    with pytest.raises(LayoutError, match="multiple of 32"):
        place_scales(((16, (32, 1)), 1, (4, 1)))


def test_the_part_of_a_pair_lies_in_the_half_that_its_block_has() -> None:
    """CuTe rounds tiles up, so the first block's part of its own 64 rows of B is theirs."""
    pair = "SM100_MMA_F16BF16_2x1SM_SS<half_t,half_t,float,256,128,Major::K,Major::K>"
    part, _ = make_tiled_mma(mma_atom(pair)).partition_B(Layout((64, 16), (16, 1)), 0)
    assert (part[0].shape, cosize(part)) == ((64, 16), 1024)


def test_a_part_that_leaves_the_matrix_is_refused() -> None:
    """CuTe rounds a tile of 128 columns up also where the matrix has 64, and the part has columns beyond it."""
    name = "SM100_MMA_F16BF16_SS<half_t,half_t,float,128,64,Major::MN,Major::MN>"
    wide = make_tiled_mma(mma_atom(name), None, (None, 128))
    with pytest.raises(LayoutError, match="64 elements along N, not a multiple of the tile's 128"):
        wide.partition_C(Layout((256, 64), (64, 1)), 0)
