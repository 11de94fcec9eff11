# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`tilefold compile` and the command line itself: forms, reports, output files, help and exit status."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tilefold.base.errors import Code

from tests.cli.kernels import write
from tests.project.tree import ROOT
from tilefold.commands.cli import COMMANDS, main

Capture = pytest.CaptureFixture[str]


@pytest.mark.parametrize(
    ("form", "contains"),
    [
        ("cute", "tile.kernel @double"),
        ("folded", "tile.kernel @double"),
        ("atoms", "tile.load"),
        ("index", "ptx.entry @double"),
        ("instr", "ptx.ld"),
        ("llvm", "define ptx_kernel void @double"),
        ("ptx", ".target sm_90a"),
    ],
)
def test_forms(form: str, contains: str, tmp_path: Path, capsys: Capture) -> None:
    assert main(["compile", write(tmp_path), "--target", "sm_90a", "--emit", form]) == 0
    assert contains in capsys.readouterr().out


def test_machine_code_goes_to_a_file(tmp_path: Path) -> None:
    out = tmp_path / "k.cubin"
    assert main(["compile", write(tmp_path), "--emit", "cubin", "-o", str(out)]) == 0
    assert out.read_bytes().startswith(b"\x7fELF")


def test_the_report_names_registers_and_instructions(tmp_path: Path, capsys: Capture) -> None:
    assert main(["compile", write(tmp_path), "--report"]) == 0
    out = capsys.readouterr().out
    for words in ("registers", "spill", "shared memory", "st.global.b32", "double"):
        assert words in out


def test_the_same_input_gives_the_same_ptx_in_every_process(tmp_path: Path) -> None:
    path = write(tmp_path)
    texts = {
        subprocess.run(
            [sys.executable, "-m", "tilefold", "compile", path],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "12345")
    }
    assert len(texts) == 1


def test_output_is_replaced_whole_or_not_at_all(tmp_path: Path, capsys: Capture) -> None:
    out = tmp_path / "out.ptx"
    out.write_text("before")
    assert main(["compile", write(tmp_path, "nonsense"), "-o", str(out)]) == 1
    assert out.read_text() == "before"
    assert main(["compile", write(tmp_path), "-o", str(out)]) == 0
    assert ".entry double" in out.read_text()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["k.cute", "out.ptx"]
    for bad in (str(tmp_path), str(tmp_path / "missing" / "x"), "a\0b"):
        assert main(["compile", write(tmp_path), "-o", bad]) == 1
        assert "error[E4002]" in capsys.readouterr().err


def test_unknown_targets_list_the_known_ones(tmp_path: Path, capsys: Capture) -> None:
    assert main(["compile", write(tmp_path), "--target", "sm_1"]) == 1
    assert "sm_90a" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [[], ["nonsense"], ["compile"], ["compile", "x", "--emit", "fortran"]])
def test_wrong_usage_has_status_2(arguments: list[str], capsys: Capture) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    assert "usage: tilefold" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "near"),
    [
        (["rnu", "x"], "run"),
        (["run", "x.cute", "--devic", "sim"], "--device"),
        (["show", "tiled-copy", "--type", "f32", "--atom", "copy.32", "--sgv", "x"], "--svg"),
        (["show", "x.cute", "-o", "x", "--acesses"], "--accesses"),
        (["cache", "cler"], "clear"),
    ],
)
def test_a_wrong_word_is_answered_by_the_nearest(arguments: list[str], near: str, capsys: Capture) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    assert capsys.readouterr().err.endswith(f"; did you mean {near}?\n")


def test_no_command_prints_the_help(capsys: Capture) -> None:
    with pytest.raises(SystemExit):
        main([])
    assert "tilefold explain E0203" in capsys.readouterr().err


@pytest.mark.parametrize("command", COMMANDS)
def test_help_teaches(command: str, capsys: Capture) -> None:
    with pytest.raises(SystemExit) as caught:
        main([command, "--help"])
    assert caught.value.code == 0
    said = capsys.readouterr().out
    assert f"usage: tilefold {command}" in said
    assert f"examples:\n  tilefold {command}" in said
    assert "None" not in said


def test_version(capsys: Capture) -> None:
    with pytest.raises(SystemExit):
        main(["--version"])
    assert capsys.readouterr().out.startswith("tilefold 0.")


def test_every_code_is_explained(capsys: Capture) -> None:
    assert main(["explain"]) == 0
    listed = re.findall(r"^\s*(E\d{4})\b", capsys.readouterr().out, re.MULTILINE)
    assert listed == sorted(code.id for code in Code)
    assert len({code.id for code in Code}) == len(Code)


def test_passes_are_listed_and_explained(capsys: Capture) -> None:
    assert main(["passes"]) == 0
    out = capsys.readouterr().out
    for words in ("fold-layouts", "instr", "cse"):
        assert words in out
    assert main(["passes", "fold-layouts"]) == 0
    assert "Before:" in capsys.readouterr().out


def test_a_bug_is_one_line_that_says_how_to_repeat_it(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise IndexError("broken on purpose")

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("tilefold.passes.lower_tensors.LowerTensorsPass.apply", fail)
    assert main(["compile", write(tmp_path)]) == 70
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "internal error: IndexError: broken on purpose" in said
    (folder,) = tmp_path.glob("tilefold-*")
    program = folder / "program.cute"
    assert f"reproduce with: tilefold opt {program} -p lower-tensors" in said
    assert "Traceback" in (folder / "internal-error.txt").read_text()
    assert main(["opt", str(program), "-p", "lower-tensors"]) == 70


def test_files_have_the_lines_of_the_source_and_the_terminal_has_them_on_request(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, out = write(tmp_path), tmp_path / "out"
    lines = {"ptx": '.file\t1 "k.cute"', "llvm": '!DIFile(filename: "k.cute", directory: "")', "cubin": "k.cute"}
    for form, line in lines.items():
        assert main(["compile", path, "--emit", form, "--no-cache", "-o", str(out)]) == 0
        assert line.encode() in out.read_bytes()
        assert str(tmp_path).encode() not in out.read_bytes()
        assert main(["compile", path, "--emit", form, "--no-cache", "--no-locations", "-o", str(out)]) == 0
        assert line.encode() not in out.read_bytes()
    for options, named in (([], False), (["--locations"], True)):
        assert main(["compile", path, *options]) == 0
        assert (lines["ptx"] in capsys.readouterr().out) is named
    monkeypatch.setenv("TILEFOLD_LINE_INFO", "0")
    for form in lines:
        assert main(["compile", path, "--emit", form, "-o", str(out)]) == 0
        assert b"k.cute" not in out.read_bytes()
    monkeypatch.setenv("TILEFOLD_LINE_INFO", "no")
    assert main(["compile", path]) == 0
    assert main(["compile", path, "-o", str(out)]) == 1
    assert "error[E4003]: TILEFOLD_LINE_INFO=no is neither 0 nor 1" in capsys.readouterr().err
