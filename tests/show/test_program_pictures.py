# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The pictures of a program: what they show, and the files that they come in."""

import re
from pathlib import Path

import pytest
from tilefold.base.spaces import wavefronts
from tilefold.compiler.frontend.params import expand
from tilefold.dialects.tile import AllocOp

from tests.kernels.harness import EXAMPLES
from tests.profiling.kernels import NAIVE
from tilefold.commands.cli import main
from tilefold.driver.lowering import load
from tilefold.tools.show.program_pictures import bank_table, lane_table, pictures_of

Capture = pytest.CaptureFixture[str]
SWIZZLED = NAIVE.replace('smem, align<16>, "(32,32):(32,1)"', 'smem, align<16>, "S<5,0,5> o 0 o (32,32):(32,1)"')


@pytest.mark.parametrize(("text", "column"), [(NAIVE, {0}), (SWIZZLED, set(range(32)))])
def test_shared_memory_by_banks_shows_where_a_column_lies(text: str, column: set[int]) -> None:
    module = load(expand(text, "k.cute", {})).module
    alloc = next(op for op in module.walk() if isinstance(op, AllocOp))
    table = bank_table("%s", alloc.result.type)
    assert [len(row) for row in table.rows] == [32] * 32
    assert {bank for row in table.rows for bank, cell in enumerate(row) if cell.text.endswith(",0")} == column


def test_lanes_by_banks_are_as_deep_as_the_access_takes_wavefronts() -> None:
    offsets, lanes = [128 * lane for lane in range(32)], list(range(32))
    table = lane_table("conflict", offsets, lanes, 4)
    assert len(table.rows) == wavefronts(offsets, lanes, 4)[0] == 32
    assert [row[0].text for row in table.rows] == [str(lane) for lane in range(32)]
    assert len(lane_table("broadcast", [0] * 32, lanes, 4).rows) == 1


def test_copies_and_multiplications_of_a_program_are_drawn() -> None:
    expected = {
        "hgemm": ("SM80_CP_ASYNC", "SM80_16x8x16", "banks across"),
        "gemm_sm90": ("SM90_64x128x16_F32F16F16_SS", "SM90_U32x4_STSM_N", "%sA of line"),
    }
    for name, parts in expected.items():
        path, left_out = next(path for path in EXAMPLES if path.stem == name), list[str]()
        titles = [shown.title for shown in pictures_of(load(expand(path.read_text(), path.name, {})).module, left_out)]
        assert not left_out
        for words in parts:
            assert any(words in title for title in titles), words


def test_a_picture_that_is_too_large_is_named(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "k.cute"
    path.write_text(
        NAIVE.replace("ptx.bar.sync 0", '%large = tile.alloc : !tile.tensor<i8, smem, align<16>, "150000:1">', 1)
    )
    assert main(["show", str(path), "-o", str(tmp_path / "k.svg")]) == 0
    assert (
        "left out: %large of line 16: 150000:1 of i8 is not drawn by banks: up to 131072 elements"
        in capsys.readouterr().err
    )


def test_files_are_svg_png_and_html(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "naive.cute"
    path.write_text(NAIVE)
    for kind, begins in (("svg", b"<svg "), ("png", b"\x89PNG"), ("html", b"<!doctype html>")):
        out = tmp_path / f"out.{kind}"
        assert main(["show", "file", str(path), "--accesses", "-o", str(out)]) == 0
        assert out.read_bytes().startswith(begins)
    text = (tmp_path / "out.html").read_text()
    assert text.count("<svg") == 2 + 2
    assert re.search(
        r"31 bank conflicts, 32 wavefronts instead of 1: .*naive.cute:25:5, the lanes",
        re.sub(r"</text>\s*<text[^>]*>", " ", text),
    )
    assert text.index("31 bank conflicts") < text.index(
        "0 bank conflicts: ptx.st at"
    )  # which comes first in the program
    assert main(["show", str(path), "-o", str(tmp_path / "out.gif")]) == 1
    assert "must end in .svg, .png or .html" in capsys.readouterr().err


@pytest.mark.parametrize("suffix", ["svg", "html"])
def test_expressions_are_drawn(suffix: str, tmp_path: Path) -> None:
    out = tmp_path / f"out.{suffix}"
    assert main(["show", "S<2,0,3> o 0 o (4,8):(8,1)", "-o", str(out)]) == 0
    assert "<svg" in out.read_text()


def test_expressions_without_a_picture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "size((3,4):(1,3))", "-o", str(tmp_path / "out.svg")]) == 1
    assert "error[E4003]: expression: the result is not a layout, so it has no table" in capsys.readouterr().err
    assert not (tmp_path / "out.svg").exists()
