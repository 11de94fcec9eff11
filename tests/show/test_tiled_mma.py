# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What `tilefold show tiled-mma` prints, and how it refuses."""

import re
from pathlib import Path

import pytest
from tilefold.layout.text.layouts import parse_layout

from tests.layout.svg import cells
from tests.show.harness import refused, shown

WARPS = ("--atom", "SM80_16x8x16_F32F16F16F32_TN", "--atoms", "(2,2,1):(1,2,4)", "--permute", "(32,32,16)")

# The first part is what CuTe's print shows; the layouts of operands are get_layoutA_TV() and so on.
PRINTED = """\
TiledMMA
  ThrLayoutVMNK:  (_32,_2,_2,_1):(_1,_32,_64,_128)
  PermutationMNK: (_32,_32,_16)
MMA_Atom
  ThrID:      _32:_1
  Shape_MNK:  (_16,_8,_16)
  LayoutA_TV: ((_4,_8),(_2,_2,_2)):((_32,_1),(_16,_8,_128))
  LayoutB_TV: ((_4,_8),(_2,_2)):((_16,_1),(_8,_64))
  LayoutC_TV: ((_4,_8),(_2,_2)):((_32,_1),(_16,_8))
Tile_MNK: (_32,_32,_16)
LayoutA_TV: ((_4,_8,_2,_2),((_2,_2,_2),(_1,_1))):((_64,_1,_16,_0),((_32,_8,_256),(_0,_0)))
LayoutB_TV: ((_4,_8,_2,_2),((_2,_2),(_2,_1))):((_64,_1,_0,_8),((_32,_256),(_16,_0)))
LayoutC_TV: ((_4,_8,_2,_2),((_2,_2),(_1,_2))):((_64,_1,_16,_256),((_32,_8),(_0,_512)))
ThrMMA
  Thr VMNK: (5,1,0,_0)
partition_A: ((_2,_2,_2),_4,_2):((_1,_256,_8),_1024,_16) from element 546
fragment_A: ((_2,_2,_2),_4,_2):((_1,_2,_4),_16,_8)
"""


def test_a_tiled_mma_a_thread_and_its_part(capsys: pytest.CaptureFixture[str]) -> None:
    assert shown(capsys, "tiled-mma", *WARPS, "--A", "(128,32):(32,1)", "--thread", "37") == PRINTED


def test_a_part_of_a_swizzled_tensor_is_the_same_function(capsys: pytest.CaptureFixture[str]) -> None:
    """Where CuTe has a plain layout for a part, its strides depend on the thread."""
    tensor = "S<3,3,3> o 0 o (64,64):(64,1)"
    whole = parse_layout(tensor)
    for thread in range(0, 32, 3):
        text = shown(capsys, "tiled-mma", *WARPS[:2], "--A", tensor, "--thread", str(thread), "--plain")
        found = re.search(r"^partition_A: (.*) from element (\d+)$", text, re.MULTILINE)
        assert found is not None
        part, start = parse_layout(found[1]), int(found[2])
        # PTX ISA, mma.m16n8k16: value v of lane t is in row t / 4 (+ 8), columns 2 * (t % 4) and the next (+ 8)
        expected = [
            whole(thread // 4 + 8 * (v // 2 % 2) + 16 * m, 2 * (thread % 4) + v % 2 + 8 * (v // 4) + 16 * k)
            for k in range(4)
            for m in range(4)
            for v in range(8)
        ]
        assert [start + part(i) for i in range(part.size)] == expected


def test_tables_say_who_has_what(capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys, "tiled-mma", "--atom", "SM80_8x8x4_F64F64F64F64_TN", "--table", "--plain")
    assert "PermutationMNK: (_,_,_)" in text
    rows = [line for line in text[text.index("\nC\n") :].splitlines() if line[:1].isdigit()]
    # PTX ISA, mma.m8n8k4 with .f64: row = lane / 4, column = 2 * (lane % 4) + value
    for row, line in enumerate(rows):
        expected = [f"T{4 * row + column // 2}V{column % 2}" for column in range(8)]
        assert [cell.strip() for cell in line.split("|")[1:-1]] == expected


def test_an_image_is_written(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "mma.svg"
    shown(capsys, "tiled-mma", "--atom", "SM70_8x8x4_F32F16F16F32_NT", "--svg", str(path))
    # PTX ISA, mma.m8n8k4: value i of lane l is element i of the column l % 4 of A, from row 4 on for lanes 16 and more
    assert cells(path.read_text()).count("T16V0") == 3  # in A, B and C


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (("--atom", "SM80"), "E0302", "--atom: unknown MMA atom 'SM80'"),
        ((*WARPS[:2], "--atoms", "(2,x)"), "E0101", "--atoms"),
        ((*WARPS[:2], "--atoms", "(2,2,1,1):(1,2,4,4)"), "E0202", "--atoms"),
        ((*WARPS[:2], "--permute", "(7,8,16)"), "E0204", "--permute"),
        ((*WARPS[:2], "--permute", "(16,8,16,1)"), "E0202", "--permute"),
        ((*WARPS, "--thread", "128"), "E4003", "--thread: '128' is not one of the threads"),
        ((*WARPS, "--A", "(100,32)"), "E0314", "--A: mode 0"),
        ((*WARPS, "--B", "32:1"), "E0307", "--B"),
    ],
)
def test_a_mistake_marks_its_option(
    capsys: pytest.CaptureFixture[str], options: tuple[str, ...], code: str, said: str
) -> None:
    first = refused(capsys, "tiled-mma", *options)[0]
    assert first.startswith(f"error[{code}]")
    assert said in first
