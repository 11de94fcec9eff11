# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`tilefold layout`: results, names, styles, tables, pictures and explanations."""

import subprocess
import sys
from pathlib import Path

import pytest
from tilefold.layout.text.operations import OPERATIONS

from tests.layout.svg import cells
from tests.layout_command.harness import printed

MMA = 'make_tiled_mma(mma_atom("SM80_16x8x8_F32F16F16F32_TN"))'


def test_one_result_stands_alone(capsys: pytest.CaptureFixture[str]) -> None:
    assert printed(capsys, "raked_product((8,4):(1,8), 8:1)") == "((8,8),(1,4)):((32,1),(0,8))\n"


def test_names_hold_over_all_expressions(capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, "A=(8,4):(1,8)", "B=complement(A,64); size(B)", "A o 4:2")
    assert text == "A = (8,4):(1,8)\nB = 2:32\n2\n4:2\n"


def test_cxx_style(capsys: pytest.CaptureFixture[str]) -> None:
    assert printed(capsys, "--cxx", "S<3,4,3> o 0 o (8,?):(1,8)") == "Sw<3,4,3> o _0 o (_8,?):(_1,_8)\n"
    assert printed(capsys, "--cxx", "local_tile((16,8):(8,1),(4,4),(1,0))") == "((_4,_4):(_8,_1),_32)\n"


def test_tables_are_of_the_unnamed(capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, "--table", "A=(2,2):(1,2)", "A(1,_)", "(2,3):(3,1)")
    assert text.count("|") == 2 * 2 + 2 * 4  # two rows of one cell, and two rows of three
    assert text.startswith("A = (2,2):(1,2)\n(2):(2)\n(2,3):(3,1)\n\n(2):(2)\n")
    assert "(2,2):(1,2)\n    0   1\n" in printed(capsys, "--table", "A=(2,2):(1,2)")


def test_thread_value_pictures(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    text = printed(capsys, "--tv", "--tile", "(2,3)", "(2,3):(1,2)")
    assert "1 | T1V0 | T1V1 | T1V2 |\n" in text
    assert "1 | T1V0 | T1V1 | T1V2 |\n" in printed(capsys, "--tv", "(2,3):(1@0,1@1)")
    text = printed(capsys, "--tv", MMA)
    assert [line for line in text.splitlines() if line in ("A", "B", "C")] == ["A", "B", "C"]
    file = tmp_path / "mma.svg"
    assert printed(capsys, "--svg", str(file), MMA).startswith("TiledMMA\n")
    assert cells(file.read_text()).count("T31V3") == 2
    both = tmp_path / "both.svg"
    printed(capsys, "--tv", "--svg", str(both), "--png", str(tmp_path / "both.png"), MMA, "(2,3):(1@0,1@1)")
    assert len(cells(both.read_text())) == len(cells(file.read_text())) + 6
    assert (tmp_path / "both.png").read_bytes().startswith(b"\x89PNG")
    atoms = 'copy_atom("SM75_U32x1_LDSM_N", 16)', 'mma_atom("SM80_8x8x4_F64F64F64F64_TN")'
    printed(capsys, "--tv", "--svg", str(file), *atoms)
    assert cells(file.read_text()).count("T31V1") == 2  # where ldmatrix puts it, and in C


def test_colour_on_demand_alone(capsys: pytest.CaptureFixture[str]) -> None:
    plain = printed(capsys, "--table", "(2,2):(1,2)")
    assert plain == printed(capsys, "--table", "--color", "never", "(2,2):(1,2)")
    assert printed(capsys, "--table", "--color", "always", "(2,2):(1,2)").count("\x1b[0m") == 4
    assert "\x1b" not in plain


def test_explanations(capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, "--explain", "A=(6,2):(8,2)", "composition(A, (4,3):(3,1))", "A o 3:2")
    assert text.startswith("A = (6,2):(8,2)\n\ncomposition((6,2):(8,2), (4,3):(3,1))\n  1. by mode: ")
    assert text.endswith("= (3):(16)\n") or text.endswith("= 3:16\n")
    assert "= ((2,2),3):((24,2),8)\n\ncomposition(" in text


def test_operations_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    lines = printed(capsys, "--operations").splitlines()
    assert len(lines) == len(OPERATIONS)
    assert "complement(a layout, [a shape])" in lines
    assert "make_layout(a shape or a plain layout, [a stride or a plain layout], ...)" in lines


def test_it_needs_the_layouts_alone() -> None:
    code = (
        "import sys; from tilefold.commands.cli import main;"
        "main(['layout', '--table', '--explain', 'coalesce((2,2):(1,2))']);"
        "print(sorted({'xdsl', 'numpy', 'rich', 'llvmlite', 'cuda'} & set(sys.modules)))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.splitlines()[-1] == "[]"
