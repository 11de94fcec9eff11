# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tiles that reach beyond their tensor, and tensors whose extents and strides only the run gives."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tilefold.layout.algebra.core import Layout

from tests.show.harness import refused, shown
from tilefold.tools.show.ragged import within

COPY = ["tiled-copy", "--thr", "(8,4):(1,8)", "--val", "8:1", "--atom", "copy.128", "--type", "f16", "--plain"]
MMA = ["tiled-mma", "--atom", "SM80_16x8x16_F32F16F16F32_TN", "--plain"]


def test_a_tile_at_the_corner(capsys: pytest.CaptureFixture[str]) -> None:
    """Thread 5 has rows 40 to 47 and columns 0 and 4 of its tile: of the one at (64,24), rows 104 on are outside."""
    tensor = ["--src", "(100,30):(1,100)", "--cta-tiler", "(64,8)", "--ragged"]
    lines = shown(capsys, *COPY, *tensor, "--cta-coord", "(1,3)", "--thread", "5").splitlines()
    assert "gmem_ptr[16b](0x7f0000001340) o (64,8):(1,100)" in lines
    assert lines[-4:] == [
        "thread_layout_A_gmem_cta_tensor_A starts 2504 elements after gmem_tensor_A",
        "mode 0 of gmem_tensor_A has 100 elements: the last of its 2 tiles of 64 reaches 28 beyond them",
        "mode 1 of gmem_tensor_A has 30 elements: the last of its 4 tiles of 8 reaches 2 beyond them",
        "thread_layout_A_gmem_cta_tensor_A: 0 of 16 elements are within gmem_tensor_A",
    ]
    inside = shown(capsys, *COPY, *tensor, "--cta-coord", "(1,2)", "--thread", "12").splitlines()
    assert inside[-1] == "thread_layout_A_gmem_cta_tensor_A: 8 of 16 elements are within gmem_tensor_A"


def test_what_covers_is_shown_as_before(capsys: pytest.CaptureFixture[str]) -> None:
    tensor = ["--src", "(128,32):(1,128)", "--cta-tiler", "(64,8)", "--cta-coord", "(1,_)", "--thread", "5"]
    assert shown(capsys, *COPY, *tensor, "--ragged") == shown(capsys, *COPY, *tensor)


@settings(max_examples=20)
@given(st.integers(1, 40), st.integers(1, 20), st.integers(0, 31))
def test_elements_within_are_counted_one_by_one(rows: int, columns: int, thread: int) -> None:
    """A thread of 4 x 8 threads with 2 x 1 values: row 2 (t % 4) + v and column t // 4 of tiles of 8 x 8."""
    from tilefold.layout.atoms.copy_names import copy_atom
    from tilefold.layout.tiling.tiled_copy import make_tiled_copy

    copy = make_tiled_copy(copy_atom("UniversalCopy<uint32_t>", 32), Layout((4, 8), (1, 4)), Layout(2, 1))
    of_rows = [8 * i + 2 * (thread % 4) + v for i in range(-(-rows // 8)) for v in range(2)]
    of_columns = [8 * i + thread // 4 for i in range(-(-columns // 8))]
    counted = within(Layout((rows, columns), (1, 100)), lambda layout: copy.partition_S(layout, thread))
    inside = sum(row < rows for row in of_rows) * sum(column < columns for column in of_columns)
    assert counted == (inside, len(of_rows) * len(of_columns))


@pytest.mark.parametrize("what", [COPY, MMA])
def test_without_ragged_tiles_must_cover(capsys: pytest.CaptureFixture[str], what: list[str]) -> None:
    option = "--src" if what is COPY else "--C"
    message, _, _, hint = refused(capsys, *what, option, "(100,30):(1,100)")
    assert message.startswith(f"error[E0314]: {option}: mode 0 of the tensor has 100 elements")
    assert hint.endswith("or give --ragged")


def test_extents_of_run_time_need_a_promise_or_ragged(capsys: pytest.CaptureFixture[str]) -> None:
    *_, hint = refused(capsys, *COPY, "--src", "(?,8):(1,?)")
    assert hint == "  hint: promise it, by ?{div=64}, or give --ragged"
    promised = shown(capsys, *COPY, "--src", "(?{div=64},8):(1,?)", "--thread", "5").splitlines()
    assert "gmem_ptr[16b](0x7f0000000050) o ((8,1),?,2):((1,0),64,?{div=4})" in promised
    assert promised[-1] == "thread_layout_A_gmem_tensor_A starts 40 elements after gmem_tensor_A"
    given = ["--src", "(?,8):(1,?)", "--ragged", "--thread", "5"]
    assert shown(capsys, *COPY, *given).splitlines()[-1] == (
        "mode 0 of gmem_tensor_A has ? elements: its last tile of 64 may reach beyond them"
    )


def test_a_tile_that_begins_at_an_index_of_run_time(capsys: pytest.CaptureFixture[str]) -> None:
    tile = ["--src", "(?,?):(?,1)", "--cta-tiler", "(64,8)", "--cta-coord", "(1,_)", "--ragged"]
    lines = shown(capsys, *COPY, *tile).splitlines()
    assert "gmem_ptr[16b](?) o (64,8,?):(?,1,8)" in lines
    assert "gmem_cta_tensor_A starts ?{div=64} elements after gmem_tensor_A" in lines


def test_integers_of_run_time_have_no_values_to_show(capsys: pytest.CaptureFixture[str]) -> None:
    tile = ["--src", "(?,?):(1,?)", "--cta-tiler", "(64,8)", "--run-time-tiler", "--ragged"]
    message, *_, hint = refused(capsys, *COPY, *tile)
    assert message.startswith("error[E4003]: --cta-tiler: ")
    assert "leave out --run-time-tiler" in hint


def test_parts_of_operands(capsys: pytest.CaptureFixture[str]) -> None:
    """Lane 31 accumulates rows 7 and 15, columns 6 and 7 of each tile of 16 x 8."""
    lines = shown(capsys, *MMA, "--C", "(100,30):(1,100)", "--ragged", "--thread", "31").splitlines()
    rows = [16 * i + row for i in range(7) for row in (7, 15)]
    columns = [8 * i + column for i in range(4) for column in (6, 7)]
    inside = sum(row < 100 for row in rows) * sum(column < 30 for column in columns)
    assert lines[-1] == f"partition_C: {inside} of {len(rows) * len(columns)} elements are within C"
    dynamic = shown(capsys, *MMA, "--A", "(64,?):(?,1)", "--ragged").splitlines()
    assert "partition_A: ((2,2,2),4,?):((1,?{div=8},8),?{div=16},16) from element 0" in dynamic
    assert dynamic[-1] == "mode 1 of A has ? elements: its last tile of 16 may reach beyond them"


@pytest.mark.parametrize(
    ("name", "bits"),
    [
        ("f8E4M3FN", 8), ("e5m2", 8), ("float_e4m3_t", 8), ("bfloat16_t", 16), ("cutlass::half_t", 16), ("tf32", 32),
        ("si4", 4), ("uint4b_t", 4), ("b1", 1), ("cute.Float64", 64), ("Uint8", 8), ("s16", 16), ("int", 32),
        ("uint128_t", 128), ("4b", 4), ("32", 32),
    ],
)  # fmt: skip
def test_element_types_by_their_names(capsys: pytest.CaptureFixture[str], name: str, bits: int) -> None:
    text = shown(capsys, "tiled-copy", "--thr", "32", "--atom", "DefaultCopy", "--type", name)
    assert re.search(rf"ValueType:    {bits}b$", text, re.MULTILINE)


@pytest.mark.parametrize(("name", "hint"), [("half", "half_t"), ("bfloat16", "bfloat16_t"), ("i7", "a width: 16b")])
def test_other_names_are_refused_with_those_nearby(capsys: pytest.CaptureFixture[str], name: str, hint: str) -> None:
    lines = refused(capsys, "tiled-copy", "--thr", "32", "--atom", "DefaultCopy", "--type", name)
    assert lines[0] == f"error[E4003]: --type: unknown element type '{name}'"
    assert hint in lines[-1]


@pytest.mark.parametrize(
    ("named", "width"),
    [
        ("UniversalCopy<double>", "UniversalCopy<uint64_t>"),
        ("UniversalCopy<half_t,half_t>", "UniversalCopy<uint16_t>"),
        ("UniversalCopy<float_e4m3_t>", "UniversalCopy<uint8_t>"),
        ("SM80_CP_ASYNC_CACHEALWAYS_ZFILL<float>", "SM80_CP_ASYNC_CACHEALWAYS_ZFILL<uint32_t>"),
    ],
)
def test_a_width_by_another_type(capsys: pytest.CaptureFixture[str], named: str, width: str) -> None:
    made = ["tiled-copy", "--thr", "32", "--type", "1b", "--val", "64:1", "--atom"]
    assert shown(capsys, *made, named) == shown(capsys, *made, width)


@pytest.mark.parametrize(
    "named", ["UniversalCopy<quux>", "UniversalCopy<float,double>", "SM80_CP_ASYNC_CACHEALWAYS<char>"]
)
def test_types_without_an_atom(capsys: pytest.CaptureFixture[str], named: str) -> None:
    lines = refused(capsys, "tiled-copy", "--thr", "32", "--atom", named, "--type", "8b")
    assert lines[0].startswith("error[E0302]: --atom: unknown copy atom")
