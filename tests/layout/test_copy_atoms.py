# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Copy atoms against formulas written from the PTX ISA's fragment figures, and their self-checks."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from tilefold.base.errors import Code, LayoutError
from tilefold.base.spaces import GMEM, SMEM
from tilefold.base.target import targets
from tilefold.layout.algebra.core import Layout
from tilefold.layout.atoms.bulk_copy import cp_async
from tilefold.layout.atoms.cache_hints import LOAD_HINTS, split_policy, with_hints, with_policy
from tilefold.layout.atoms.copy_atom import CopyAtom
from tilefold.layout.atoms.copy_names import copy_atom
from tilefold.layout.atoms.copy_table import COPY_ATOMS
from tilefold.layout.atoms.instructions import Absent, CpAsync, LdMatrix
from tilefold.layout.atoms.ldmatrix import (
    ldmatrix,
    ldmatrix_bytes,
    ldmatrix_columns,
    ldmatrix_unpacked,
    of_warp,
    stmatrix,
    stmatrix_bytes,
)
from tilefold.layout.atoms.numbers import Copied
from tilefold.layout.atoms.ptx_text import copy_text
from tilefold.layout.atoms.universal import universal_copy

ROW_BITS, MATRIX_BITS = 8 * 16, 8 * 8 * 16


def fragment_bit(thread: int, register: int, bit: int, transposed: bool) -> int:
    """The bit, counted through the rows of all matrices, that PTX puts into a register of a thread.

    ldmatrix: the register of matrix i holds, in thread t, elements (t / 4, 2 (t % 4)) and the next in its
    row; with .trans the roles of row and column are exchanged.
    """
    half, within = divmod(bit, 16)
    row, column = thread // 4, 2 * (thread % 4) + half
    if transposed:
        row, column = column, row
    return register * MATRIX_BITS + row * ROW_BITS + column * 16 + within


def row_bit(thread: int, bit: int, matrices: int) -> int:
    """The bit at an offset in the row whose address the thread gives: rows 0-7 are matrix 0, 8-15 matrix 1,
    ...
    """
    return thread % (8 * matrices) * ROW_BITS + bit


@pytest.mark.parametrize("make", [ldmatrix, stmatrix])
@pytest.mark.parametrize("matrices", [1, 2, 4])
@pytest.mark.parametrize("transposed", [False, True])
def test_matrix_copies_follow_the_fragment_figures(
    make: Callable[[int, bool], CopyAtom], matrices: int, transposed: bool
) -> None:
    atom = make(matrices, transposed)
    registers, rows = (atom.dst_bits, atom.src_bits) if make is ldmatrix else (atom.src_bits, atom.dst_bits)
    assert atom.ref_bits == registers
    for thread in range(32):
        for bit in range(32 * matrices):
            assert registers(thread, bit) == fragment_bit(thread, bit // 32, bit % 32, transposed)
        for bit in range(ROW_BITS):
            assert rows(thread, bit) == row_bit(thread, bit, matrices)


def place_of_byte(thread: int, byte: int) -> tuple[int, int]:
    """(row, column) of the byte of a thread's registers in matrices of rows of 16 bytes, one below the other.

    stmatrix.m16n8.b8: register i holds of rows 2 (t % 4) and the next of matrix i column t / 4, then column t / 4 + 8.
    """
    matrix, within = divmod(byte, 4)
    return 8 * matrix + 2 * (thread % 4) + within % 2, thread // 4 + 8 * (within // 2)


@pytest.mark.parametrize("matrices", [1, 2, 4])
def test_stores_of_bytes_follow_the_fragment_figure(matrices: int) -> None:
    atom = stmatrix_bytes(matrices)
    for thread in range(32):
        for bit in range(32 * matrices):
            row, column = place_of_byte(thread, bit // 8)
            assert atom.src_bits(thread, bit) == 128 * row + 8 * column + bit % 8
        for bit in range(128):
            assert atom.dst_bits(thread, bit) == 128 * (thread % (8 * matrices)) + bit


@pytest.mark.parametrize("matrices", [1, 2])
def test_loads_of_bytes_are_the_instruction_and_an_exchange_of_pairs(matrices: int) -> None:
    atom = ldmatrix_bytes(matrices)
    rows = [atom.src_bits(lane, 0) // 128 for lane in range(16 * matrices)]
    assert sorted(rows) == list(range(16 * matrices))
    for thread in range(32):
        for register in range(2 * matrices):
            for byte in range(4):
                # ldmatrix.m16n16.b8.trans: byte j of register 2 i + h is row 4 (t % 4) + j of matrix i, in the order of
                # the lanes that give the addresses, and column t / 4 + 8 h
                row, column = rows[16 * (register // 2) + 4 * (thread % 4) + byte], thread // 4 + 8 * (register % 2)
                # the atom has the first bytes of two registers, then the last ones
                place = 8 * (register // 2) + 4 * (byte // 2) + 2 * (register % 2) + byte % 2
                assert atom.dst_bits(thread, 8 * place) == 128 * row + 8 * column


@pytest.mark.parametrize("matrices", [1, 2])
def test_loads_of_columns_are_the_instruction(matrices: int) -> None:
    atom = ldmatrix_columns(matrices)
    for thread in range(32):
        assert atom.src_bits(thread, 5) == 128 * (thread % (16 * matrices)) + 5
        for byte in range(8 * matrices):
            # ldmatrix.m16n16.b8.trans: as above, without an exchange
            row, column = 16 * (byte // 8) + 4 * (thread % 4) + byte % 4, thread // 4 + 8 * (byte // 4 % 2)
            assert atom.dst_bits(thread, 8 * byte) == 128 * row + 8 * column


@pytest.mark.parametrize("bits", [4, 6])
@pytest.mark.parametrize("matrices", [1, 2, 4])
def test_unpacked_matrices_have_the_registers_of_bytes(bits: int, matrices: int) -> None:
    atom = copy_atom(f"SM100_SU{bits}_DU8x16_x{matrices}_LDSM_N", 8)
    for thread in range(32):
        for byte in range(4 * matrices):
            # ldmatrix.m8n16: register i holds elements 4 (t % 4) and the three after it of row t / 4 of matrix i
            place = 16 * (8 * (byte // 4) + thread // 4) + 4 * (thread % 4) + byte % 4
            assert atom.dst(thread, byte) == place
        assert atom.src(thread, 5) == 16 * (thread % (8 * matrices)) + 5
    with pytest.raises(LayoutError, match=f"makes bytes of elements of {bits} bits") as caught:
        atom.check_executable()
    assert caught.value.code == Code.ATOM_OPERAND.id
    with pytest.raises(LayoutError, match="elements of 4 or 6 bits, not of 5"):
        ldmatrix_unpacked(5, matrices)


@pytest.mark.parametrize("make", [ldmatrix_bytes, ldmatrix_columns, stmatrix_bytes])
def test_matrices_of_bytes_come_in_certain_numbers(make: Callable[[int], CopyAtom]) -> None:
    with pytest.raises(LayoutError) as caught:
        make(3)
    assert caught.value.code == Code.ATOM_OPERAND.id


def test_cache_hints_raise_what_the_target_needs() -> None:
    plain = copy_atom("UniversalCopy<uint128_t>", 16)
    assert with_hints(plain) == plain
    hinted = with_hints(plain, "nc.L1::no_allocate.L2::256B", "cs")
    assert (hinted.load_hint, hinted.store_hint) == ("nc.L1::no_allocate.L2::256B", "cs")
    assert hinted.targets == targets(80, 74)
    assert with_hints(copy_atom("SM80_CP_ASYNC_CACHEALWAYS<uint128_t>", 16), "L2::64B").targets == targets(80, 74)
    kept = with_hints(copy_atom("UniversalCopy<uint128_t>", 16), "L1::no_allocate.L2::evict_first.L2::64B")
    assert kept.targets == targets(80, 74)
    assert split_policy(kept.load_hint) == ("L1::no_allocate.L2::64B", "L2::evict_first")
    assert all(split_policy(with_policy(hint, "L2::evict_last")) == (hint, "L2::evict_last") for hint in LOAD_HINTS)


@pytest.mark.parametrize(
    ("name", "load", "store", "said"),
    [
        ("UniversalCopy<uint128_t>", "nc.cs", "", "'nc.cs' is not a cache hint of a load"),
        ("UniversalCopy<uint128_t>", "L2::128B.nc", "", "similar ones"),
        ("UniversalCopy<uint128_t>", "L2::128B.L2::evict_first", "", "similar ones"),
        ("UniversalCopy<uint128_t>", "L2::evict_first.L2::evict_unchanged", "", "not a cache hint of a load"),
        ("UniversalCopy<uint128_t>", "", "cv", "not a cache hint of a store"),
        ("SM80_CP_ASYNC_CACHEGLOBAL<uint128_t>", "nc", "", "not a cache hint of a cp.async"),
        ("SM80_CP_ASYNC_CACHEGLOBAL<uint128_t>", "", "cs", "no cache hint for its store"),
        ("SM75_U32x4_LDSM_N", "nc", "", "no cache hint for its load"),
    ],
)
def test_cache_hints_that_ptx_does_not_have(name: str, load: str, store: str, said: str) -> None:
    with pytest.raises(LayoutError) as caught:
        with_hints(copy_atom(name, 16), load, store)
    assert caught.value.code == Code.CACHE_HINT.id
    assert said in str(caught.value)


@pytest.mark.parametrize(("cache", "sizes"), [("ca", [4, 8, 16]), ("cg", [16])])
def test_cp_async_copies_only_the_sizes_that_ptx_has(cache: str, sizes: list[int]) -> None:
    for size in (4, 8, 16):
        atom = cp_async(cache, size)
        assert (atom.source.spaces, atom.destination.spaces) == ((GMEM,), (SMEM,))
        assert [atom.src_bits(0, b) for b in range(8 * size)] == list(range(8 * size))
        assert atom.instruction == (CpAsync(cache) if size in sizes else Absent())
        text = f"cp.async.{cache}.shared.global [%0], [%1], {size}, %2;" if size in sizes else "none"
        assert copy_text(cp_async(cache, size, zfill=True)) == text


@pytest.mark.parametrize("bits", [8, 16, 32, 64, 128])
def test_universal_copies_move_a_thread_s_own_bits(bits: int) -> None:
    atom = universal_copy(bits).with_value_bits(8)
    assert (atom.threads, atom.values) == (1, bits // 8)
    assert [atom.src(0, v) for v in range(atom.values)] == list(range(atom.values))


@pytest.mark.parametrize("name", COPY_ATOMS)
def test_every_atom_is_complete(name: str) -> None:
    atom = copy_atom(name)
    assert atom.name == name
    assert atom.contract.section.startswith("PTX ISA")
    assert atom.targets.oldest.min_sm >= 20
    assert atom.targets.oldest.min_ptx >= 20
    sets = [
        {layout(t, b) for t in range(layout[0].size) for b in range(layout[1].size)}
        for layout in (atom.src_bits, atom.dst_bits, atom.ref_bits)
    ]
    assert sets[0] == sets[1] == sets[2] == set(range(len(sets[0])))


def test_the_values_of_an_atom_have_the_width_asked_for() -> None:
    atom = copy_atom("SM75_U32x4_LDSM_N", 16)
    assert (atom.threads, atom.values, atom.val_bits) == (32, 8, 16)
    assert str(atom.src) == "(32,8):(8,1)"
    for name in ("SM75_U16x8_LDSM_T", "SM90_U16x2_STSM_T"):
        with pytest.raises(LayoutError) as caught:
            copy_atom(name, 32)
        assert caught.value.code == Code.ATOM_VALUE_WIDTH.id


@pytest.mark.parametrize(
    ("named", "width"),
    [("UniversalCopy<double>", "uint64_t"), ("UniversalCopy<half_t,half_t>", "uint16_t"),
     ("SM80_CP_ASYNC_CACHEGLOBAL_ZFILL<float>", "uint32_t"), ("SM80_CP_ASYNC_CACHEALWAYS<int64_t>", "uint64_t")],
)  # fmt: skip
def test_an_atom_of_a_width_is_named_by_any_type_of_it(named: str, width: str) -> None:
    found = copy_atom(named, 8)
    assert found.name == named
    assert replace(found, name="same") == replace(copy_atom(f"{named.partition('<')[0]}<{width}>", 8), name="same")


def test_bulk_copies_have_the_bits_of_their_names() -> None:
    atom = copy_atom("SM90_BULK_COPY_S2G<4096>", 16)
    assert (atom.threads, atom.values, atom.loads) == (1, 256, False)
    assert (atom.source.spaces, atom.destination.spaces) == ((SMEM,), (GMEM,))
    assert [atom.src(0, v) for v in range(256)] == list(range(256))
    assert set(copy_atom("SM90_BULK_COPY_AUTO", 16).source.spaces) == {GMEM, SMEM}
    for bits in (0, 64, 192, 1 << 21):
        with pytest.raises(LayoutError) as caught:
            copy_atom(f"SM90_BULK_COPY_G2S<{bits}>")
        assert caught.value.code == Code.ATOM_OPERAND.id


def test_unknown_atoms_are_refused_with_similar_names() -> None:
    with pytest.raises(LayoutError) as caught:
        copy_atom("SM75_U32x4_LDSM")
    assert caught.value.code == Code.ATOM_UNKNOWN.id
    assert "SM75_U32x4_LDSM_N" in caught.value.hint


@pytest.mark.parametrize(
    ("src", "dst"),
    [
        (Layout((32, 8), (8, 1)), Layout((64, 4), (4, 1))),  # a warp reads, two write
        (Layout((32, 8), (8, 1)), Layout((32, 8), (4, 1))),  # half is written twice
        (Layout((32, 8), (8, 1)), Layout((32, 4), (4, 1))),  # half is not written
    ],
)
def test_atoms_check_themselves(src: Layout, dst: Layout) -> None:
    with pytest.raises(LayoutError) as caught:
        of_warp("mine", LdMatrix(1), src, dst, targets(80, 70), Copied())
    assert caught.value.code == Code.ATOM_INVALID.id
