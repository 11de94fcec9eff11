# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The tables of `tilefold show`, as text and as SVG."""

from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.layout.svg import cells
from tests.show.harness import shown

SVG = "{http://www.w3.org/2000/svg}"


def test_who_copies_what(capsys: pytest.CaptureFixture[str]) -> None:
    made = ["--thr", "(2,3):(3,1)", "--val", "(2,3):(1,2)", "--atom", "copy.64", "--type", "f64", "--table"]
    lines = shown(capsys, "tiled-copy", *made).splitlines()
    source, destination = lines.index("source"), lines.index("destination")
    rows = [line for line in lines[source:destination] if line[:1].isdigit()]
    threads = [[cell.split("V")[0].strip() for cell in row.split("|")[1:-1]] for row in rows]
    upper, lower = ["T0"] * 3 + ["T1"] * 3 + ["T2"] * 3, ["T3"] * 3 + ["T4"] * 3 + ["T5"] * 3
    assert threads == [upper, upper, lower, lower]
    assert rows[1].split("|")[4].strip() == "T1V1"
    assert lines[source + 1 : destination - 1] == lines[destination + 1 :]


def test_ldmatrix_reads_rows_and_writes_pairs(capsys: pytest.CaptureFixture[str]) -> None:
    made = ["--tv", "((4,8),2):((16,1),8)", "--tiler", "(8,8)", "--atom", "ldmatrix.x1", "--type", "f16", "--table"]
    lines = shown(capsys, "tiled-copy", *made).splitlines()
    rows = {
        title: [cell.strip() for cell in lines[lines.index(title) + 5].split("|")[1:-1]]
        for title in ("source", "destination")
    }
    assert rows["source"] == [f"T1V{i}" for i in range(8)]  # lane 1 gives row 1
    assert rows["destination"] == [f"T{4 + i // 2}V{i % 2}" for i in range(8)]  # lanes 4 to 7 receive it


def test_svg(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "table.svg"
    made = ["--thr", "(2,3):(3,1)", "--val", "(2,3):(1,2)", "--atom", "copy.64", "--type", "f64", "--svg", str(file)]
    shown(capsys, "tiled-copy", *made)
    root = ElementTree.fromstring(file.read_text())
    assert cells(file.read_text()).count("T5V5") == 2
    fills = {element.get("fill") for element in root.iter(f"{SVG}rect")}
    assert len(fills) == 1 + 6  # the background, and a colour for each thread
