# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What `tilefold show c-atom` prints of make_tiled_copy_C_atom, and tiled copies made for a tiled MMA."""

import re
from pathlib import Path

import pytest
from tilefold.layout.algebra.core import Layout
from tilefold.layout.text.layouts import parse_layout

from tests.show.harness import refused, shown

MMA = ("--atom", "SM80_16x8x16_F16F16F16F16_TN", "--permute", "(16,8,16)")

# By hand: value v of thread t is at row t / 4 + 8 * (v / 2), column 2 * (t % 4) + v % 2 (PTX ISA, mma.m16n8k16), and
# place row + 16 * column. Of the modes of (thr, val) the tiler keeps, for rows and
# for columns, those that move along them, joined where they follow each other: rows 8:1 and 2:8 are 16:1.
HEAD = "layoutC_TV: ((_4,_8),((_2,_2),(_1,_1))):((_32,_1),((_16,_8),(_0,_0)))\nmma_tiler: (_16,_8)\n"
STEPS = {
    1: (
        "((_4,_8),_1):((_32,_1),_0)",
        "(_8:_1, _4:_2)",
        "(_8,_4):(_1,_32)",
        "((_4,_8),_1):((_8,_1),_0)",
    ),
    2: (
        "((_4,_8),_2):((_32,_1),_16)",
        "(_8:_1, (_4,_2):(_2,_1))",
        "(_8,(_4,_2)):(_1,(_32,_16))",
        "((_4,_8),_2):((_8,_1),_32)",
    ),
    4: (
        "((_4,_8),(_2,_2)):((_32,_1),(_16,_8))",
        "(_16:_1, (_4,_2):(_2,_1))",
        "(_16,(_4,_2)):(_1,(_32,_16))",
        "((_4,_8),(_2,_2)):((_16,_1),(_64,_8))",
    ),
}
WORDS = ("layout_TV = ", "tiler = ", "tile2mma = ", "layout_tv = ")


def test_the_steps_are_those_of_cute(capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys, "c-atom", *MMA, "--copy-V", "1,2,4")
    assert text.startswith(HEAD)
    sections = re.split(r"=+\ncopy_V = (\d)\n=+\n", text)
    assert [int(count) for count in sections[1::2]] == list(STEPS)
    for count, section in zip(sections[1::2], sections[2::2], strict=True):
        lines = section.splitlines()
        for word, expected in zip(WORDS, STEPS[int(count)], strict=True):
            assert f"{word}{expected}" in lines


@pytest.mark.parametrize("count", [1, 2, 4])
def test_the_table_says_where_each_value_is_in_the_tile(capsys: pytest.CaptureFixture[str], count: int) -> None:
    text = shown(capsys, "c-atom", *MMA, "--copy-V", str(count), "--plain")
    found = re.search(r"tile2mma = (\S+)", text)
    assert found is not None
    tile = parse_layout(found[1])
    assert isinstance(tile, Layout)
    rows = re.findall(r"^ ?(\d+)  \|(.*)\|$", text, re.MULTILINE)
    assert [int(thread) for thread, _ in rows] == list(range(32))
    places: list[int] = []
    for thread, cells in rows:
        for value, cell in enumerate(cells.split("|")):
            row, column = int(thread) // 4 + 8 * (value // 2), 2 * (int(thread) % 4) + value % 2
            assert tile(int(cell)) == row + 16 * column
            places.append(int(cell))
    assert sorted(places) == list(range(32 * count))


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (("--copy-V", "8"), "E0306", "a thread has 4 values of the accumulator, not 8"),
        (("--copy-V", "0"), "E0306", "not 0"),
        (("--copy-V", "1,3"), "E0204", "--copy-V: the first 3 values of a thread form no layout"),
        (("--permute", "()"), "E0213", "--permute: the permutation of a tiled MMA has an empty tuple"),
        (("--copy-V", "1;2"), "E4003", "not a list of numbers"),
        (("--permute", "(7,8,16)"), "E0204", "--permute"),
    ],
)
def test_mistakes(capsys: pytest.CaptureFixture[str], options: tuple[str, ...], code: str, said: str) -> None:
    first = refused(capsys, "c-atom", *MMA, *options)[0]
    assert first.startswith(f"error[{code}]")
    assert said in first


def test_a_tiled_copy_of_an_operand_and_its_layouts(capsys: pytest.CaptureFixture[str]) -> None:
    made = ("--mma", "SM80_16x8x16_F32F16F16F32_TN", "--operand", "A", "--atom", "ldmatrix.x4", "--type", "f16")
    lines = shown(capsys, "tiled-copy", *made, "--tv-layouts", "--plain").splitlines()
    (source,) = [parse_layout(line[12:]) for line in lines if line.startswith("LayoutS_TV: ")]
    (target,) = [parse_layout(line[12:]) for line in lines if line.startswith("LayoutD_TV: ")]
    for lane in range(32):
        for v in range(8):
            # ldmatrix: lane l addresses row l % 16, from column 0 or 8; A's registers are those of mma.m16n8k16
            assert source(lane, v) == lane % 16 + 16 * (8 * (lane // 16) + v)
            row, column = lane // 4 + 8 * (v // 2 % 2), 2 * (lane % 4) + v % 2 + 8 * (v // 4)
            assert target(lane, v) == row + 16 * column


def test_a_cotiled_copy(capsys: pytest.CaptureFixture[str]) -> None:
    made = ("--cotiled", "(32,8):(8,1)", "--data", "(16,16):(16,1)", "--atom", "copy.128", "--type", "f16")
    text = shown(capsys, "tiled-copy", *made, "--plain")
    assert "  Tiler_MN:       [16:1;(2,8):(8,1)]\n  TiledLayout_TV: ((2,16),8):((16,1),32)\n" in text


def test_pictures_and_tables_show_who_has_each_place(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Of two values, thread t is in row t / 4, and its second value four places of the copy's tile after the first."""
    path = tmp_path / "c_atom.svg"
    text = shown(capsys, "c-atom", *MMA, "--copy-V", "1,2", "--table", "--svg", str(path))
    of_one, of_two = text.split("\ncopy_V = ")[-2:]
    for t in range(32):
        assert f"T{t}V0" in of_one
        row = next(line for line in of_two.splitlines() if line.startswith(f"{t // 4} |"))
        cells = [cell.strip() for cell in row.split("|")[1:-1]]
        assert (cells[t % 4], cells[t % 4 + 4]) == (f"T{t}V0", f"T{t}V1")
    svg = path.read_text()
    assert svg.startswith("<svg ")
    assert "copy_V = 1" in svg
    assert "copy_V = 2" in svg
