# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`tilefold run` and `tilefold compile` on programs that begin on the host."""

from pathlib import Path

import pytest

from tests.host.harness import C, kernel, main_of
from tilefold.commands.cli import main

Capture = pytest.CaptureFixture[str]
BASE = C + kernel('gpu.printf "%d\\n", %n : i32', "%n: i32", call=(
    "%b = func.call @base() : () -> i32\n"
    "gpu.launch_func @m::@k blocks in (%y, %y, %y) threads in (%y, %y, %y) args(%b : i32)"
))  # fmt: skip


def _file(folder: Path, text: str, name: str = "p.mlir") -> str:
    path = folder / name
    path.write_text(text)
    return str(path)


def test_variables_come_from_the_option_or_the_environment(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = _file(tmp_path, BASE)
    monkeypatch.setenv("BASE", "8")
    assert main(["run", path, "--device", "sim"]) == 1
    assert "E3402" in capsys.readouterr().err
    assert main(["run", path, "--device", "sim", "--allow-env", "BASE"]) == 0
    assert main(["run", path, "--device", "sim", "--allow-env", "BASE=9"]) == 0
    assert main(["run", path, "--device", "sim", "--allow-env", "BASE="]) == 0
    assert capsys.readouterr().out == "8\n9\n0\n"
    monkeypatch.delenv("BASE")
    assert main(["run", path, "--device", "sim", "--allow-env", "BASE"]) == 1
    said = capsys.readouterr()
    assert f"{path}:8:8: error[E3403]" in said.err


def test_programs_run_at_each_stage(tmp_path: Path, capsys: Capture) -> None:
    path = _file(tmp_path, BASE, "p.cute")
    for stage in ("cute", "index", "instr", "all"):
        assert main(["run", path, "--stage", stage, "--allow-env", "BASE=5"]) == 0
    assert capsys.readouterr().out == "5\n" * 4
    assert main(["run", path, "--stage", "atoms", "--allow-env", "BASE=5"]) == 1
    assert "cute, index, instr, or all" in capsys.readouterr().err


def test_what_was_printed_comes_before_the_fault(tmp_path: Path, capsys: Capture) -> None:
    body = "%l = cute.static : !cute.layout<\"4:1\">\ncute.print(%l) : !cute.layout<\"4:1\">\n"  # fmt: skip
    path = _file(tmp_path, main_of(body + "%z = arith.constant 0 : i32\n%q = arith.remsi %z, %z : i32"))
    assert main(["run", path]) == 1
    said = capsys.readouterr()
    assert said.out == "4:1\n"
    assert f"{path}:5:6: error[E3209]" in said.err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--arg", "A=a.npy"), "--arg applies to run.launch only"),
        (("--counters",), "--counters applies to"),
        (("--entry", "other"), "no func.func @other"),
        (("--allow-env", "=3"), "neither NAME nor NAME=VALUE"),
        (("--max-steps", "0"), "must be at least 1"),
        (("--max-steps", "3", "--allow-env", "BASE=1"), "E3210"),
    ],
)
def test_options_that_do_not_fit_are_refused(
    tmp_path: Path, capsys: Capture, options: tuple[str, ...], words: str
) -> None:
    assert main(["run", _file(tmp_path, BASE), "--device", "sim", *options]) == 1
    assert words in capsys.readouterr().err


def test_kernels_compile_for_the_blocks_of_their_launches(tmp_path: Path, capsys: Capture) -> None:
    path = _file(tmp_path, kernel('gpu.printf "x"', threads=96))
    assert main(["compile", path]) == 0
    assert ".reqntid 96, 1, 1" in capsys.readouterr().out
    known = " attributes {known_block_size = array<i32: 8, 4, 2>}"
    device = f"gpu.module @m {{\ngpu.func @k() kernel{known} {{\ngpu.return\n}}\n}}\n"
    assert main(["compile", _file(tmp_path, device)]) == 0
    assert ".reqntid 8, 4, 2" in capsys.readouterr().out
    assert main(["compile", _file(tmp_path, device.replace(known, ""))]) == 1
    assert "its block size is unknown" in capsys.readouterr().err


def test_host_functions_alone_have_no_stage(tmp_path: Path, capsys: Capture) -> None:
    assert main(["compile", _file(tmp_path, main_of(""))]) == 1
    assert "E2006" in capsys.readouterr().err
