# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What `tilefold show tiled-copy` prints equals what CuTe's print does."""

import re
from pathlib import Path

import pytest
from tilefold.layout.text.layouts import parse_layout, to_text

from tests.show.harness import shown
from tilefold.commands.cli import main

EXAMPLE = [
    *("tiled-copy", "--type", "u16", "--src", "(1024,1024):(1,1024)", "--dst", "(128,32):(1,128)"),
    *("--cta-tiler", "(128,128,32)", "--cta-coord", "(0,0,_)", "--proj", "(1,X,1)", "--run-time-tiler"),
    *("--thr", "(8,4):(1,8)", "--val", "(8):(1)", "--atom", "SM80_CP_ASYNC_CACHEALWAYS<uint128_t>", "--thread", "0"),
]

# What CuTe C++ prints for the same, but for the values of pointers.
PRINTED = """\
gmem_tensor_A:
gmem_ptr[16b](P) o (_1024,_1024):(_1,_1024)
gmem_cta_tensor_A:
gmem_ptr[16b](P) o (128,32,32):(_1,_1024,32768)
smem_tensor_A:
ptr[16b](P) o (_128,_32):(_1,_128)
thread_layout_A:
(_8,_4):(_1,_8)
vector_layout_A:
(_8):(_1)
gmem_tiled_copy_A:
TiledCopy
  Tiler_MN:       (_64,_4)
  TiledLayout_TV: (_32,_8):(_8,_1)
Copy_Atom
  ThrID:        _1:_0
  ValLayoutSrc: (_1,_8):(_0,_1)
  ValLayoutDst: (_1,_8):(_0,_1)
  ValLayoutRef: (_1,_8):(_0,_1)
  ValueType:    16b

thread_gmem_copy_A:
ThrCopy
  ThrIdx: 0
TiledCopy
  Tiler_MN:       (_64,_4)
  TiledLayout_TV: (_32,_8):(_8,_1)
Copy_Atom
  ThrID:        _1:_0
  ValLayoutSrc: (_1,_8):(_0,_1)
  ValLayoutDst: (_1,_8):(_0,_1)
  ValLayoutRef: (_1,_8):(_0,_1)
  ValueType:    16b

thread_layout_A_gmem_cta_tensor_A:
gmem_ptr[16b](P) o ((_8,_1),2,8,32):((_1,_0),_64,_4096,32768)
thread_layout_A_smem_tensor_A:
ptr[16b](P) o ((_8,_1),_2,_8):((_1,_0),_64,_512)
"""


def without_pointers(text: str) -> str:
    """`text` with every pointer's value replaced by P."""
    return re.sub(r"ptr\[(\d+)b\]\(0x[0-9a-f]+\)", r"ptr[\1b](P)", text)


def test_the_example_prints_what_cute_prints(capsys: pytest.CaptureFixture[str]) -> None:
    assert without_pointers(shown(capsys, *EXAMPLE)) == PRINTED


def test_plain_text_is_the_same_without_marks(capsys: pytest.CaptureFixture[str]) -> None:
    text = without_pointers(shown(capsys, *EXAMPLE, "--plain"))
    assert text == re.sub(r"\b_(\d)", r"\1", PRINTED)


def test_a_static_tiler_gives_the_same_static(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [argument for argument in EXAMPLE if argument != "--run-time-tiler"]
    text = without_pointers(shown(capsys, *arguments))
    assert "gmem_ptr[16b](P) o (_128,_32,_32):(_1,_1024,_32768)\n" in text
    assert text.replace("_", "") == PRINTED.replace("_", "")


def test_distances_are_in_elements_and_pointers_in_bytes(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [*EXAMPLE[:-1], "9", "--cta-coord", "(2,0,_)"]
    lines = shown(capsys, *arguments).splitlines()
    base = int(re.findall(r"0x([0-9a-f]+)", lines[1])[0], 16)
    assert f"({base + 2 * 256:#x})" in lines[3]
    assert lines[-3:] == [
        "gmem_cta_tensor_A starts 256 elements after gmem_tensor_A",
        "thread_layout_A_gmem_cta_tensor_A starts 1288 elements after gmem_tensor_A",
        "thread_layout_A_smem_tensor_A starts 136 elements after smem_tensor_A",
    ]


RECORDED = [
    line.split("; ")
    for line in Path(__file__).with_name("recorded.txt").read_text().splitlines()
    if not line.startswith("#")
]


@pytest.mark.parametrize(
    ("side", "atom", "bits", "thr", "val", "tensor", "thread", "start", "layout"),
    RECORDED,
    ids=[f"{row[1]}-{row[0]}" for row in RECORDED],
)
def test_partitions_are_those_of_cute(
    capsys: pytest.CaptureFixture[str],
    side: str,
    atom: str,
    bits: str,
    thr: str,
    val: str,
    tensor: str,
    thread: str,
    start: str,
    layout: str,
) -> None:
    role = "--src" if side == "S" else "--dst"
    made = ["--atom", atom, "--type", bits, "--thr", thr, "--val", val, "--thread", thread, "--plain"]
    lines = shown(capsys, "tiled-copy", *made, role, tensor).splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith("thread_layout_A_"))
    assert lines[at + 1].split(" o ", 1)[1] == layout
    elements = "1 element" if start == "1" else f"{start} elements"
    started = [f"{lines[at][:-1]} starts {elements} after {lines[0][:-1]}"]
    assert lines[at + 2 :] == (started if int(start) else [])


def test_a_swizzled_part_is_the_same_function_as_the_tensor(capsys: pytest.CaptureFixture[str]) -> None:
    tensor, threads = "S<3,3,3> o 0 o (64,64):(64,1)", range(0, 32, 5)
    made = ["--atom", "copy.128", "--type", "f16", "--thr", "(4,8):(8,1)", "--val", "(1,8)", "--plain"]
    whole = parse_layout(tensor)
    for thread in threads:
        lines = shown(capsys, "tiled-copy", *made, "--dst", tensor, "--thread", str(thread)).splitlines()
        at = lines.index("thread_layout_A_smem_tensor_A:")
        part = parse_layout(lines[at + 1].split(" o ", 1)[1])
        starts = re.search(r"starts (\d+) elements", "".join(lines[at + 2 :]))
        start = int(starts[1]) if starts else 0
        for i in range(8):
            assert start + part(i) == whole(thread // 8, thread % 8 * 8 + i), to_text(part)


def test_thread_value_layout_and_tiler_make_the_same_copy(capsys: pytest.CaptureFixture[str]) -> None:
    shared = ["--atom", "copy.64", "--type", "f64", "--src", "(4,9):(1,4)", "--thread", "2"]
    by_layouts = shown(capsys, "tiled-copy", *shared, "--thr", "(2,3):(3,1)", "--val", "(2,3):(1,2)")
    by_tv = shown(capsys, "tiled-copy", *shared, "--tv", "((3,2),(2,3)):((12,2),(1,4))", "--tiler", "(4,9)")
    layouts = "thread_layout_A:\n(_2,_3):(_3,_1)\nvector_layout_A:\n(_2,_3):(_1,_2)\n"
    assert layouts in by_layouts
    assert by_layouts.replace(layouts, "") == by_tv
    assert "o ((_1,(_2,_3)),_1,_1):((_0,(_1,_4)),_0,_0)" in by_tv


@pytest.mark.parametrize(
    ("name", "same_as"),
    [
        ("cp.async.ca.8", "SM80_CP_ASYNC_CACHEALWAYS<uint64_t>"),
        ("cp.async.cg.16", "SM80_CP_ASYNC_CACHEGLOBAL<cute::uint128_t>"),
        ("copy.32", "UniversalCopy<uint32_t>"),
        ("auto", "AutoVectorizingCopy"),
    ],
)
def test_short_names_of_atoms(capsys: pytest.CaptureFixture[str], name: str, same_as: str) -> None:
    made = ["tiled-copy", "--type", "half_t", "--thr", "(8,4)", "--val", "8"]
    assert shown(capsys, *made, "--atom", name) == shown(capsys, *made, "--atom", same_as)


@pytest.mark.parametrize(
    ("name", "src", "dst"),
    [
        ("ldmatrix.x4", "(_32,_8):(_8,_1)", "(_32,(_2,_4)):(_2,(_1,_64))"),
        ("ldmatrix.x4.trans", "(_32,_8):(_8,_1)", "((_4,_8),(_1,_2,_4)):((_16,_1),(_1,_8,_64))"),
        ("stmatrix.x1", "(_32,_2):(_2,_1)", "((_8,_4),_8):((_8,_0),_1)"),
    ],
)
def test_matrix_atoms(capsys: pytest.CaptureFixture[str], name: str, src: str, dst: str) -> None:
    lines = shown(capsys, "tiled-copy", "--type", "f16", "--thr", "32", "--val", "8", "--atom", name).splitlines()
    assert f"  ValLayoutSrc: {src}" in lines
    assert f"  ValLayoutDst: {dst}" in lines


def test_a_tiler_of_layouts_is_printed_as_a_tuple(capsys: pytest.CaptureFixture[str]) -> None:
    made = ["--tv", "(8,2):(1,8)", "--tiler", "[4:2;(2,2):(1,4)]", "--atom", "copy.16", "--type", "f16"]
    assert "  Tiler_MN:       (_4:_2,(_2,_2):(_1,_4))\n" in shown(capsys, "tiled-copy", *made)


def test_a_space_that_the_atom_does_not_reach_is_a_warning(capsys: pytest.CaptureFixture[str]) -> None:
    made = ["--thr", "32", "--val", "8", "--atom", "cp.async.ca.16", "--type", "f16", "--src", "256"]
    assert main(["show", "tiled-copy", *made, "--src-space", "smem"]) == 0
    assert "has its source in gmem, not in smem" in capsys.readouterr().err
