# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tiled MMAs: threads hold their operands as the atoms ask, and copies bring them there."""

from typing import Any

import pytest
import tilefold.layout as cute
from hypothesis import given, settings
from hypothesis import strategies as st
from tilefold.base.errors import Code, LayoutError
from tilefold.layout.algebra.core import Layout, make_layout, make_row_major_layout
from tilefold.layout.algebra.modes import slice_and_offset
from tilefold.layout.atoms.ldmatrix import ldmatrix, stmatrix
from tilefold.layout.atoms.mma_table import mma_atom
from tilefold.layout.atoms.universal import universal_copy
from tilefold.layout.tiling.tiled_copy import (
    make_tiled_copy_A,
    make_tiled_copy_B,
    make_tiled_copy_C,
    make_tiled_copy_C_atom,
)
from tilefold.layout.tiling.tiled_mma import TiledMma, make_tiled_mma

from tests.layout.test_tiled_copy import elements

ATOMS = ["SM80_16x8x16_F32F16F16F32_TN", "SM80_16x8x8_F32TF32TF32F32_TN", "UniversalFMA<float>"]
MMA = make_tiled_mma(mma_atom(ATOMS[0]), make_layout((2, 2)), (32, 32, 16))


@st.composite
def tiled_mmas(draw: st.DrawFn) -> TiledMma:
    """Atoms over threads in any order, with or without larger tiles."""
    atom = mma_atom(draw(st.sampled_from(ATOMS)))
    threads = draw(st.sampled_from([(1, 1, 1), (2, 2, 1), (4, 1, 1), (1, 2, 1)]))
    layout = cute.make_ordered_layout(threads, tuple(draw(st.permutations([0, 1, 2]))))
    times = draw(st.sampled_from([None, 1, 2]))
    covered = tuple(s * t for s, t in zip(atom.shape, threads, strict=True))
    return make_tiled_mma(atom, layout, () if times is None else tuple(times * c for c in covered))


@settings(max_examples=12)
@given(tiled_mmas(), st.sampled_from([1, 2]), st.booleans())
def test_threads_hold_every_element_of_every_operand(mma: TiledMma, tiles: int, row_major: bool) -> None:
    for operand, (x, y) in {"A": (0, 2), "B": (1, 2), "C": (0, 1)}.items():
        shape = (tiles * mma.tile_size(x), mma.tile_size(y))
        tensor = make_row_major_layout(shape) if row_major else make_layout(shape)
        held = [e for t in range(mma.threads) for e in elements(*mma.partition(operand, tensor, t))]
        assert set(held) == set(range(tensor.size))
        assert operand != "C" or len(held) == tensor.size
        assert mma.partition(operand, tensor, 0)[0].shape == mma.partition_shape(operand, shape)


@settings(max_examples=12)
@given(tiled_mmas())
def test_thread_value_layouts_say_where_a_thread_s_elements_are(mma: TiledMma) -> None:
    for operand, (x, y) in {"A": (0, 2), "B": (1, 2), "C": (0, 1)}.items():
        tile = make_layout((mma.tile_size(x), mma.tile_size(y)))
        tv = mma.layout_tv(operand)
        for thread in range(mma.threads):
            assert [tv(thread, v) for v in range(tv[1].size)] == elements(*mma.partition(operand, tile, thread))


@settings(max_examples=12)
@given(tiled_mmas())
def test_the_operands_of_a_thread_meet_in_its_products(mma: TiledMma) -> None:
    """The rows of A and the columns of B that an atom's threads hold are those of its part of C."""
    m, n, k = mma.tile_shape
    place = make_layout((m, n, k))
    for thread in range(0, mma.threads, 7):
        v, am, an, _ = mma.thread_coord(thread)
        atom_threads = [t for t in range(mma.threads) if mma.thread_coord(t)[1:3] == (am, an)]
        rows = {e % m for t in atom_threads for e in elements(*mma.partition_A(make_layout((m, k)), t))}
        columns = {e % n for t in atom_threads for e in elements(*mma.partition_B(make_layout((n, k)), t))}
        for e in elements(*mma.partition_C(make_layout((m, n)), thread)):
            assert e % m in rows
            assert e // m in columns
        assert v < mma.atom.threads
        assert place.size == m * n * k


def test_copies_bring_each_thread_what_it_multiplies() -> None:
    tensor = make_row_major_layout((64, 16))
    cases: list[tuple[Any, str, Any]] = [(make_tiled_copy_A, "A", ldmatrix(4)), (make_tiled_copy_B, "B", ldmatrix(2))]
    for make, operand, atom in cases:
        copy = make(atom.with_value_bits(16), MMA)
        for thread in range(MMA.threads):
            part, start = MMA.partition(operand, tensor, thread)
            fragment = MMA.make_fragment(operand, part)
            registers = {fragment(i): e for i, e in enumerate(elements(part, start))}
            retiled = copy.retile(fragment)
            arriving = elements(*copy.partition_D(tensor, thread))
            assert [registers[retiled(i)] for i in range(retiled.size)] == arriving


def test_accumulators_are_stored_from_their_registers() -> None:
    tensor = make_row_major_layout((32, 64))
    for copy in (
        make_tiled_copy_C(stmatrix(4).with_value_bits(16), MMA),
        make_tiled_copy_C(universal_copy(32).with_value_bits(16), MMA),
        make_tiled_copy_C_atom(universal_copy(32).with_value_bits(16), MMA),
    ):
        stored = [e for t in range(MMA.threads) for e in elements(*copy.partition_D(tensor, t))]
        assert sorted(stored) == list(range(tensor.size))


def test_shared_memory_operands_have_descriptors() -> None:
    mma = make_tiled_mma(mma_atom("SM90_64x64x16_F32F16F16_SS<Major::K,Major::K>"))
    part, start = mma.partition_A(make_row_major_layout((128, 64)), 5)
    assert (str(part), start) == ("((64,16),2,4):((64,1),4096,16)", 0)
    assert str(mma.make_fragment("A", part)) == "(1,2,4):(0,512,2)"


@pytest.mark.parametrize(
    ("make", "code"),
    [
        (lambda: TiledMma(MMA.atom, make_layout((2, 2))), Code.RANK_MISMATCH),
        (lambda: MMA.partition_A(Layout(64, 1), 0), Code.TILE_RANK),
        (lambda: make_tiled_copy_B(ldmatrix(4).with_value_bits(16), make_tiled_mma(MMA.atom)), Code.TOO_FEW_VALUES),
        (
            lambda: make_tiled_copy_C_atom(stmatrix(4).with_value_bits(16), make_tiled_mma(MMA.atom)),
            Code.TOO_FEW_VALUES,
        ),
    ],
)
def test_tilings_that_do_not_fit_are_refused(make: Any, code: Code) -> None:
    with pytest.raises(LayoutError) as caught:
        make()
    assert caught.value.code == code.id


@settings(max_examples=12)
@given(tiled_mmas(), st.booleans())
def test_one_mode_of_threads_gives_the_same_parts(mma: TiledMma, row_major: bool) -> None:
    for operand, (x, y) in {"A": (0, 2), "B": (1, 2), "C": (0, 1)}.items():
        shape = (2 * mma.tile_size(x), mma.tile_size(y), 3)
        whole = mma.tidfrg(operand, make_row_major_layout(shape) if row_major else make_layout(shape))
        for thread in range(mma.threads):
            coord = (thread, (None, (None,) * len(whole[1][1])))
            expected = mma.partition(operand, make_row_major_layout(shape) if row_major else make_layout(shape), thread)
            assert slice_and_offset(coord, whole) == expected
