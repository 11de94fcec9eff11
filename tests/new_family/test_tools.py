# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The tools show the instructions of the family: remarks, PTX, pictures, timelines, counters and faults."""

import json
from pathlib import Path

import pytest
from tilefold.base.target import Target

import tilefold
from tests.kernels.harness import program_of
from tests.new_family.kernels import PROGRAM
from tilefold.commands.cli import main

TARGET = Target("sm_90")


@pytest.fixture
def file(tmp_path: Path) -> str:
    """A file with the kernel."""
    path = tmp_path / "multiply.cute"
    path.write_text(PROGRAM)
    return str(path)


def test_explain_describes_them(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", file, "--target", "sm_90"]) == 0
    said = capsys.readouterr().out
    assert "acme.load: a warp; writes destination in rmem until acme.wait; reads source in xmem until acme.wait" in said
    assert "acme.mma: an elected thread of a warp; updates D in xmem until the mbarrier of acme.commit tells" in said


def test_the_page_of_a_program_has_them(file: str, tmp_path: Path) -> None:
    """All but machine code, since no assembler knows the instructions."""
    page = tmp_path / "multiply.html"
    assert main(["explain", file, "--target", "sm_90", "-o", str(page)]) == 0
    text = page.read_text()
    assert "acme.mma: an elected thread of a warp" in text
    assert "the assembler lacks instructions that packages define: acme.alloc, acme.commit" in text


def test_ptx_spells_them() -> None:
    ptx = program_of(PROGRAM).ptx(TARGET)
    lines = [line.strip() for line in ptx.splitlines() if line.strip().startswith("acme.")]
    assert [line.split()[0].rstrip(";") for line in lines] == [
        "acme.alloc", "acme.copy", "acme.mma", "acme.mma", "acme.commit", "acme.load", "acme.wait", "acme.free",
    ]  # fmt: skip
    (load,) = [line for line in lines if line.startswith("acme.load")]
    fragment, _, address = load.removeprefix("acme.load {").partition("}, ")
    assert len(fragment.split(", ")) == 8
    assert address.startswith("[%r")


def test_the_ir_of_each_stage_is_read_again() -> None:
    program = tilefold.load(PROGRAM)
    for stage in ("cute", "folded", "atoms", "index", "instr"):
        printed = program.ir(stage, target="sm_90")
        assert printed.count('instruction "acme.') == 8
        assert tilefold.load(printed).ir(stage, target="sm_90") == printed


def test_show_draws_their_cells(file: str, tmp_path: Path) -> None:
    drawn = tmp_path / "multiply.svg"
    assert main(["show", "file", file, "-o", str(drawn)]) == 0
    text = drawn.read_text()
    assert "D in xmem: lanes down, columns across" in text
    assert ">T31<" in text


def test_the_timeline_has_them(file: str, tmp_path: Path) -> None:
    written = tmp_path / "timeline.json"
    assert main(["run", file, "--device", "sim", "--timeline", str(written)]) == 0
    events = json.loads(written.read_text())["traceEvents"]
    assert {"acme.copy", "acme.mma", "acme.load"} <= {event["name"] for event in events}


def test_all_stages_agree(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Also the stage that reads the PTX back."""
    assert main(["run", file, "--device", "sim", "--stage", "all"]) == 0
    said = capsys.readouterr().out
    assert "stage ptx" in said
    assert said.count("256 elements within rtol") == said.count(": ok") == 6


def test_check_finds_a_mistake(file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", file]) == 0
    broken = tmp_path / "broken.cute"
    broken.write_text(PROGRAM.replace('    tile.instruction "acme.wait"()', "    // "))
    assert main(["check", str(broken)]) == 1
    said = capsys.readouterr().out
    assert "E3206" in said
    assert "while acme.load at" in said
    assert "wait for the operation by acme.wait" in said
